"""Whether the compiled modules of this source are here: all of them, or none is used.

``AVAILABLE`` is decided once, by the manifest that ``setup.py`` leaves beside this module
(``compiled.json``): every module in it is compiled for this Python, and its source is the one that
was compiled.  Otherwise, and where ``ONYX_PLAIN=1`` says so, plain Python runs: expat, pyoxigraph
and the forms of the wire, by which a client publishes and reads.  There is no engine then, so no
broker and no registration service (KernelMissing, yfilter/errors.py).

These modules choose, and no other::

    formats/markup.py, formats/text.py          XML in and out
    formats/binary.py, formats/dictionary.py    binary forms
    formats/graph/reader.py                     graphs
    yfilter/matcher.py, yfilter/keys.py         the engine or none; numbers by short keys
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_ROOT = Path(__file__).parent.parent
PLAIN = "ONYX_PLAIN"


def build_info() -> str:
    """``compiled``, or ``plain`` with the reason in brackets."""
    return "compiled" if AVAILABLE else f"plain ({REASON})"


def is_compiled() -> bool:
    """Whether the compiled modules run in this process."""
    return AVAILABLE


def _reason() -> str:
    """Why the compiled modules are not used; empty if they are."""
    if os.environ.get(PLAIN, "0") not in {"", "0"}:
        return f"{PLAIN} is set"
    try:
        manifest = json.loads((_ROOT / "formats" / "compiled.json").read_bytes())
    except OSError:
        return "not compiled; see ONYX_COMPILE in setup.py"
    if not manifest["sources"]:
        return str(manifest["reason"]) or "nothing to compile"
    for part, suffix in (("sources", ".pyx"), ("types", ".pxd")):
        for module, digest in manifest.get(part, {}).items():
            if not _is_unchanged(module, suffix, digest):
                return f"{module} changed after it was compiled; make setup compiles it again"
    for module in manifest["sources"]:
        if not any(_file(module, suffix).exists() for suffix in EXTENSION_SUFFIXES):
            return f"{module} is not compiled for this Python"
    return ""


def _is_unchanged(module: str, suffix: str, digest: str) -> bool:
    """Whether the source is the one that was compiled; an installation need not have it."""
    file = _file(module, suffix)
    return not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() == digest


def _file(module: str, suffix: str) -> Path:
    return _ROOT.joinpath(*module.split(".")).with_suffix(suffix)


REASON = _reason()
AVAILABLE = not REASON
