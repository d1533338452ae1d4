"""Replay: ``replay.c``, compiled when it is needed and given the engine's tables where they lie.

Nothing is copied but the messages: the C code probes the very arrays that the compiled engine does,
so that what lies in which cache or on which page is the same for both.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
from array import array
from pathlib import Path

from benchmarks.benchmark import BenchmarkError
from benchmarks.ceiling.recording import Column, Recording
from yfilter.index.index import Index

_SOURCE = Path(__file__).with_name("replay.c")
_FIRST_EPOCH = 1_000_000_000  # that no list has seen: the engine counts from 1

_POINTERS = (
    *("slots", "states", "lists", "bounds", "words", "atoms", "ranges", "octets", "numbers"),
    *("exact", "in_namespace", "any_namespace", "label_bits"),
    *("twig_slots", "twig_states", "twig_lists", "twig_queries", "twig_needs"),
)
_NUMBERS = (
    *("shift", "clock", "start", "queries"),
    *("twig_shift", "twig_clock", "twig_start", "twigs", "questions_min", "names_sure"),
)


class _Tables(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        ("mask", ctypes.c_uint64),
        ("twig_mask", ctypes.c_uint64),
        *((name, ctypes.c_int32) for name in _NUMBERS),
    )


class Replayed(ctypes.Structure):
    """What a message cost, and what was done: states looked up, accept lists taken, and so on."""

    nanoseconds: int
    found: int
    heads: int
    probes: int
    lists: int
    candidates: int
    verified: int
    missing: int

    _fields_ = (
        ("nanoseconds", ctypes.c_int64),
        *(
            (name, ctypes.c_int32)
            for name in ("found", "heads", "probes", "lists", "candidates", "verified", "missing")
        ),
    )


class Replay:
    """``run`` messages that were recorded of an index which has all the states that they need."""

    def __init__(self, library: ctypes.CDLL, index: Index) -> None:
        self._library = library
        self._library.found_queries.restype = ctypes.POINTER(ctypes.c_int32)
        self._epoch = _FIRST_EPOCH
        self._held: list[object] = []  # so that no table is freed while C looks at it
        self._tables = self._tables_of(index)

    def run(self, recording: Recording, cpu_clock: bool) -> Replayed:
        """Matches a message; BenchmarkError where a state was not made before."""
        self._epoch += 1
        result = Replayed()
        columns: ctypes.Array[Column] = recording.columns
        if self._library.replay(
            ctypes.byref(self._tables),
            columns,
            self._epoch,
            int(cpu_clock),
            ctypes.byref(result),
        ):
            raise BenchmarkError("the replay in C had no memory")
        if result.missing:
            raise BenchmarkError(f"the replay in C missed {result.missing} states of a message")
        return result

    def found(self, count: int) -> set[int]:
        """The queries of the message matched last."""
        return set(self._library.found_queries()[:count])

    def _tables_of(self, index: Index) -> _Tables:
        states, symbols = index._run.states, index._symbols
        twigs = index._twigs
        of_twigs = twigs.states
        columns = (
            states.transitions._slots,
            states.state_rows,
            states.accepts.lists,
            states.accepts.bounds,
            index._records.words,
            index._atoms.rows,
            index._atoms.ranges,
            index._atoms.octets,
            index._atoms.numbers,
            symbols.exact,
            symbols.in_namespace,
            symbols.any_namespace,
            states.label_bits,
            of_twigs.transitions._slots,
            of_twigs.state_rows,
            of_twigs.accepts.lists,
            twigs.trie.query_rows,
            twigs.needs,
        )
        tables = _Tables()
        for name, column in zip(_POINTERS, columns, strict=True):
            setattr(tables, name, self._address(column))
        tables.mask = states.transitions._mask
        tables.shift = states.transitions._shift
        tables.clock = index._trie.clock
        tables.start = index._run._state[0]
        tables.queries = index._trie.query_bound
        tables.twig_mask = of_twigs.transitions._mask
        tables.twig_shift = of_twigs.transitions._shift
        tables.twig_clock = twigs.trie.clock
        tables.twig_start = twigs.start()
        tables.twigs = twigs.trie.query_bound
        tables.questions_min = twigs.questions_min
        tables.names_sure = twigs.names.is_sure
        return tables

    def _address(self, column: array[int] | array[float]) -> int:
        # from_buffer asks for bytes that can be written to, which all tables are.
        held = (ctypes.c_char * memoryview(column).nbytes).from_buffer(memoryview(column).cast("B"))
        self._held.append(held)
        return ctypes.addressof(held)


def compile_replay(folder: Path) -> ctypes.CDLL:
    """The library, made in a folder by ``$CC`` or ``cc``; BenchmarkError without a compiler."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise BenchmarkError(
            f"no C compiler: {compiler[0]!r} is not there; install one or name it in $CC"
        )
    target = folder / "replay.so"
    done = subprocess.run(
        [*compiler, "-O3", "-shared", "-fPIC", "-o", str(target), str(_SOURCE), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise BenchmarkError(f"{compiler[0]} cannot compile {_SOURCE.name}: {reason}")
    return ctypes.CDLL(str(target))
