"""Where an account keeps what its networks are: ``$XDG_STATE_HOME/onyx``, or below its home."""

from __future__ import annotations

import os
from pathlib import Path

KNOWN_NETWORKS = "networks"
"""In there, what is known of networks that run (onyx/identity/known_networks.py)."""


def state_directory() -> Path:
    """RuntimeError when the account has no home."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The standard has a relative one passed over.
    home = state if state.is_absolute() else Path.home() / ".local" / "state"
    return home / "onyx"
