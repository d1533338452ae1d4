"""What a run leaves behind is noticed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from demo.cleanup import leftovers
from overlay.topology import Address


def test_processes_ports_and_directories_are_noticed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        found = leftovers([os.getpid()], [address], tmp_path)
    assert found == [
        f"process {os.getpid()} is still there",
        f"port {address} is still taken",
        f"directory {tmp_path} is still there",
    ]


def test_what_is_gone_is_gone(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        # A connection that the server closes first lingers in TIME_WAIT.
        client = socket.create_connection(address)
        accepted, _ = server.accept()
        accepted.close()
        client.close()
    assert leftovers([ended.pid], [address], tmp_path / "gone") == []
