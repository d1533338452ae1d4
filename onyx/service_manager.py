"""What a service manager is told that has started this process: systemd with ``Type=notify``, or
whoever else listens at ``NOTIFY_SOCKET``."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

VARIABLE = "NOTIFY_SOCKET"


def tell_service_manager(status: str, *, is_ready: bool = False) -> None:
    """Say what this process does, a line that ``systemctl status`` shows, and whether it is up;
    nothing where nobody listens."""
    address = os.environ.get(VARIABLE, "")
    if not address:
        return
    lines = [*(["READY=1"] if is_ready else []), f"STATUS={status}"]
    where = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto("\n".join(lines).encode(), where)
