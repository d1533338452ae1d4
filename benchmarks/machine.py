"""What the figures were measured on, and how much memory a process holds."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import resource
import sys
from pathlib import Path

import lxml.etree


def description() -> str:
    """One line: processor, cores, system, Python."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}, "
        f"lxml {lxml.etree.__version__}"
    )


def resident_bytes() -> int:
    """What this process holds in memory, after everything that can be given back was given back.

    Where the system does not say (no /proc), the most it has ever held.
    """
    gc.collect()
    _trim()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return pages * resource.getpagesize()


def _trim() -> None:
    """What the C library has freed and kept goes back to the system (glibc only)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
