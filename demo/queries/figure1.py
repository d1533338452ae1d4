"""Figure 1 of ObjectGlobe as files: the data of A and B, the functions of F, and their catalog.

::

    python -m demo.queries.figure1 DIR [--rows 200] [--ports 7301 7302]
"""

from __future__ import annotations

import argparse
import socket
from importlib import import_module
from pathlib import Path
from random import Random

from onyx.queries.functions import digest_of, pack

HERE = Path(__file__).parent
QUERY = """\
SELECT r.title, s.name, thumbnail(t.image) AS small, p.kind, p.weight
FROM A.R AS r JOIN A.S AS s ON r.s = s.id JOIN B.T AS t ON t.r = r.id
LATERAL VIEW explode(t.parts) AS p
WHERE s.id < 5
"""
"""Of the figure: R, the wrapped S, and the pictures of T, small."""
SIDE = 64  # of a picture, in pixels of a byte
CARDS = 10  # of S in a file
_WORDS = ("sundial", "globe", "astrolabe", "quadrant", "sextant", "compass", "orrery")


def make(folder: Path, rows: int = 200, ports: tuple[int, int] = (7301, 7302)) -> Path:
    """The catalog, in a folder with all that it names; equal files each time.

    ``rows``: of R; S has a tenth, T twice as many.  ``ports``: at which A and B listen.
    """
    random = Random(1)
    (folder / "S").mkdir(parents=True, exist_ok=True)
    suppliers = max(CARDS, rows // 10)
    lines = ["id,s,title"]
    for number in range(rows):
        lines.append(f"{number},{number % suppliers},{random.choice(_WORDS)} {number}")
    (folder / "R.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    cards = [f"id: {number}\nname: maker {number}\n" for number in range(suppliers)]
    for at in range(0, suppliers, CARDS):
        text = "--\n".join(cards[at : at + CARDS])
        (folder / "S" / f"{at:05}.cards").write_text(text, encoding="utf-8")
    _write_t(folder / "T.parquet", rows, random)
    said: dict[str, object] = {
        "folder": folder.absolute(),
        "port_a": ports[0],
        "port_b": ports[1],
        "rows_r": rows,
        "rows_s": suppliers,
        "rows_t": 2 * rows,
        "bytes_r": (folder / "R.csv").stat().st_size,
        "bytes_s": sum(file.stat().st_size for file in (folder / "S").iterdir()),
        "bytes_t": (folder / "T.parquet").stat().st_size,
        "width": len(_picture(random)),
        "cards": CARDS,
    }
    (folder / "functions").mkdir(exist_ok=True)
    for source in sorted((HERE / "functions").iterdir()):
        packed = pack(source)
        (folder / "functions" / f"{source.name}.zip").write_bytes(packed)
        said[f"digest_{source.name}"] = digest_of(packed)
    text = (HERE / "figure1.ttl").read_text(encoding="utf-8")
    for name, value in said.items():
        text = text.replace(f"{{{name}}}", str(value))
    catalog = folder / "figure1.ttl"
    catalog.write_text(text, encoding="utf-8")
    return catalog


def free_ports() -> tuple[int, int]:
    """Of this machine, for A and B."""
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        return a.getsockname()[1], b.getsockname()[1]


def _write_t(file: Path, rows: int, random: Random) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    part = arrow.struct([("kind", arrow.string()), ("weight", arrow.float64())])
    kinds = [("id", arrow.int32()), ("r", arrow.int32()), ("image", arrow.binary())]
    table = arrow.Table.from_pylist(
        [
            {
                "id": number,
                "r": number % rows,
                "image": _picture(random),
                "parts": [
                    {"kind": random.choice(_WORDS), "weight": round(random.uniform(1, 9), 2)}
                    for _ in range(number % 3)
                ],
            }
            for number in range(2 * rows)
        ],
        arrow.schema([*kinds, ("parts", arrow.list_(part))]),
    )
    parquet.write_table(table, file)


def _picture(random: Random) -> bytes:
    return b"P5 %d %d 255\n" % (SIDE, SIDE) + random.randbytes(SIDE * SIDE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the files of ObjectGlobe's Figure 1.")
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--rows", metavar="N", type=int, default=200)
    parser.add_argument("--ports", metavar="PORT", type=int, nargs=2, default=(7301, 7302))
    options = parser.parse_args()
    print(make(options.folder, options.rows, tuple(options.ports)))
    print(QUERY)


if __name__ == "__main__":
    main()
