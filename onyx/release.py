"""Which release this is."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from formats.kernel import build_info

DISTRIBUTION = "onyx_dissemination"  # as installers write it in the names of folders


def version() -> str:
    """Of what is installed, as the folder of its metadata is called."""
    # PERF: importlib.metadata takes 50 ms to say the same (python -m benchmarks operate).
    for place in sys.path:
        for folder in Path(place).glob(f"{DISTRIBUTION}-*.dist-info"):
            return folder.name.removeprefix(f"{DISTRIBUTION}-").removesuffix(".dist-info")
    return "(not installed)"


def who() -> dict[str, object]:
    """What a process says of itself first."""
    return {"version": version(), "build": build_info(), "pid": os.getpid()}


def lacks(extra: str, **modules: str) -> str:
    """Which of these ``modules``, by names for people, are not there, and how to get them; "" where
    all are."""
    missing = [name for module, name in modules.items() if find_spec(module) is None]
    get = f"pip install 'onyx-dissemination[{extra}]'"
    return f"takes {' and '.join(missing)}, which is not installed: {get}" if missing else ""
