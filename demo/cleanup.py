"""Cleanup: what a run has left behind on this machine, which should be nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path

from overlay.topology import Address


def leftovers(pids: Iterable[int], addresses: Iterable[Address], directory: Path) -> list[str]:
    """A line for each process that is still there, each port that is still taken, and the
    directory if it exists."""
    found = [f"process {pid} is still there" for pid in pids if _is_running(pid)]
    found += [f"port {address} is still taken" for address in addresses if _is_taken(address)]
    if directory.exists():
        found.append(f"directory {directory} is still there")
    return found


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is such a process, but it is not ours: the number was reused
        return False
    return True


def _is_taken(address: Address) -> bool:
    """Whether anybody listens there: nobody else could then."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Connections of the run that linger in TIME_WAIT are no port in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(tuple(address))
            probe.listen(1)
        except OSError:
            return True
    return False
