"""Which release this is."""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = "onyx-dissemination"


def version() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"
