"""thumbnail: a grey picture (PGM, P5) at an eighth of its width and height."""

from __future__ import annotations

import re

import pyarrow as pa

SCALE = 8
HEAD = re.compile(rb"P5\s(\d+)\s(\d+)\s255\s")


def thumbnail(images: pa.Array) -> pa.Array:
    made = [None if image is None else smaller(image) for image in images.to_pylist()]
    return pa.array(made, pa.binary())


def smaller(image: bytes) -> bytes:
    """Each pixel the mean of SCALE times SCALE; ValueError for another form."""
    head = HEAD.match(image)
    if head is None:
        raise ValueError("no PGM of 8 bits")
    columns, rows, pixels = int(head[1]), int(head[2]), image[head.end() :]
    if len(pixels) != columns * rows:
        raise ValueError(f"{len(pixels)} pixels, expected {columns * rows}")
    made = bytearray()
    for top in range(0, rows - SCALE + 1, SCALE):
        lines = [pixels[(top + y) * columns : (top + y + 1) * columns] for y in range(SCALE)]
        for left in range(0, columns - SCALE + 1, SCALE):
            made.append(sum(sum(line[left : left + SCALE]) for line in lines) // SCALE**2)
    return b"P5 %d %d 255\n" % (columns // SCALE, rows // SCALE) + bytes(made)
