"""TimedSaxon: what compiled stylesheets take in Saxon, warmed up, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.benchmark import BenchmarkError

_PROGRAM = Path(__file__).with_name("saxon_process.py")


@dataclass(frozen=True, slots=True)
class Transformed:
    """Microseconds to parse the message and to transform it into text(s), and these."""

    parse_us: float
    us: float
    text: str


class TimedSaxon:
    """A context manager; see saxon_process.py for what the process is asked."""

    def __init__(self, cpu_clock: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), "cpu" if cpu_clock else "wall"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> TimedSaxon:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def load(self, stylesheets: Path | Sequence[str]) -> None:
        """What ``transform`` runs: a file, or texts, one after the other."""
        if isinstance(stylesheets, Path):
            answer = self._ask({"stylesheet_file": str(stylesheets)})
        else:
            answer = self._ask({"stylesheets": list(stylesheets)})
        if "error" in answer:
            raise BenchmarkError(f"Saxon does not take a stylesheet: {answer['error']}")

    def transform(self, message: bytes, rounds: int = 1) -> Transformed | None:
        """The medians of so many rounds; None where it raises an error."""
        answer = self._ask({"transform": message.decode("utf-8-sig"), "rounds": rounds})
        return None if "error" in answer else Transformed(**answer)

    def said(self, stylesheet: str, message: bytes) -> str | None:
        """The text that one stylesheet makes of a message; None where either is an error."""
        try:
            self.load([stylesheet])
        except BenchmarkError:
            return None
        transformed = self.transform(message)
        return None if transformed is None else transformed.text

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError("Saxon's process has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
