"""The process of one function in its sandbox; ``function_runner.py`` starts it and speaks to it.

Frames go over descriptors 0 and 1: one byte, the length (8 bytes, little endian), the payload.

::

    runner                        this process
    SETUP (JSON)  ───────────>    confines itself, imports pyarrow
                  <───────────    READY            the runner bounds its memory now
    GO            ───────────>    imports the function
                  <───────────    READY, or FAILED
    RUN           ───────────>    begins
                  <───────────    WANT
    BATCH, or END ───────────>
                  <───────────    RESULT ...  DONE, or FAILED (JSON: message, line)

Nothing that this process says is believed: the runner checks lengths, types and figures.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from registration.spark.sandbox import confine

SETUP, GO, RUN, BATCH, END = b"S", b"G", b"U", b"B", b"E"
READY, WANT, RESULT, DONE, FAILED = b"Y", b"W", b"R", b"D", b"F"
HEAD = struct.Struct("<cQ")
MESSAGE_CHARACTERS = 500
_PARENT_DEATH_SIGNAL = 1


class _Nowhere:
    """In place of standard output, which carries frames."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class _WithoutPandas:
    """PERF: pyarrow imports pandas, where it is, for the first array that it makes: 1 s."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not there for functions", name=name)


def main() -> None:
    """Serve one runner until it closes its end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    setup = json.loads(_read()[1])
    confine(setup["folders"])
    sys.path[:] = setup["path"]
    sys.stdout = sys.stderr = _Nowhere()
    sys.meta_path.insert(0, _WithoutPandas())
    pa = _arrow()
    given, made = (
        pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(setup[n]))) for n in ("given", "made")
    )
    _write(READY)
    _expect(GO)
    try:
        module, _, name = setup["entry"].partition(":")
        sys.modules.pop(module.partition(".")[0], None)  # one of Python's may be called so
        function = getattr(importlib.import_module(module), name)
    except BaseException as error:
        _fail(error)
    _write(READY)
    work = _by_rows(function) if setup["kind"] == "scalar" else function
    while True:
        _expect(RUN)
        try:
            for batch in work(_batches(given)):
                _write(RESULT, _as(made, batch).serialize())
        except BaseException as error:
            _fail(error)
        _write(DONE)


def _by_rows(function: Callable[..., Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def work(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield [function(*batch.columns)]

    return work


def _as(schema: Any, result: Any) -> Any:
    """A RecordBatch of the signature's types, from one or from a list of arrays."""
    pa = _arrow()
    columns = result if isinstance(result, list) else result.columns
    if len(columns) != len(schema):
        raise TypeError(f"{len(columns)} columns came back; the signature has {len(schema)}")
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not isinstance(array, pa.Array):
            raise TypeError(f"{type(array).__name__} came back; a pyarrow array was expected")
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batches(schema: Any) -> Iterator[Any]:
    pa = _arrow()
    while True:
        _write(WANT)
        kind, payload = _read()
        if kind == END:
            return
        yield pa.ipc.read_record_batch(pa.py_buffer(payload), schema)


def _arrow() -> Any:
    return importlib.import_module("pyarrow")  # whose threads begin in the sandbox


def _fail(error: BaseException) -> NoReturn:
    """Say the error and the line of the function's code that raised it, and end."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if ".zip" in f.filename]
    place = f"{own[-1].filename.rpartition('.zip/')[2]}, line {own[-1].lineno}" if own else ""
    message = f"{type(error).__name__}: {error}"[:MESSAGE_CHARACTERS]
    _write(FAILED, json.dumps({"message": message, "place": place}).encode())
    os._exit(1)


def _expect(kind: bytes) -> None:
    found, _ = _read()
    assert found == kind, (found, kind)


def _read() -> tuple[bytes, bytearray]:
    kind, length = HEAD.unpack(_exactly(HEAD.size))
    return kind, _exactly(length)


def _exactly(length: int) -> bytearray:
    data = bytearray(length)
    view, filled = memoryview(data), 0
    while filled < length:
        count = os.readv(0, [view[filled:]])
        if count == 0:
            os._exit(0)  # the runner is gone
        filled += count
    return data


def _write(kind: bytes, payload: Any = b"") -> None:
    view = memoryview(payload).cast("B")
    os.write(1, HEAD.pack(kind, len(view)))
    written = 0
    while written < len(view):
        written += os.write(1, view[written:])
