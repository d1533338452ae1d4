"""Epochs: which process is a node by now, where a standby can take its place.

Each hello of a process with a lease says the epoch of that (lease.py).  One that was taken over
and does not know it yet is told so by the first that has seen its successor, and ends::

    B1, epoch 4 ── hello ──> B2                B1 stands still, its standby becomes B1
    B1, epoch 5 ── hello ──> B2
    B1, epoch 4 ── hello ──> B2 ── stale-epoch, fatal ──> B1, epoch 4, which ends

What it could do until then it could have done before it stood still: it commits nothing any more.
"""

from __future__ import annotations

from overlay.link.errors import Fenced, ProtocolError
from overlay.link.frames import ErrorFrame, Hello
from overlay.link.principal import PROCESS_ROLES, Principal

CODE = "stale-epoch"


class Epochs:
    """``own``, and the highest that has been seen, by peer."""

    def __init__(self, own: int) -> None:
        self.own = own
        self._highest: dict[str, int] = {}

    def see(self, peer: str, hello: Hello) -> None:
        """A fatal ProtocolError when a higher one of this process of the network was seen."""
        if hello.role not in PROCESS_ROLES:
            return
        highest = self._highest.get(peer, 0)
        if hello.epoch < highest:
            detail = f"{peer} is another process now: epoch {highest}, not {hello.epoch}"
            raise ProtocolError(CODE, detail, fatal=True)
        if hello.epoch > highest:
            self._highest[peer] = hello.epoch

    def hear(self, frame: ErrorFrame, principal: Principal | None) -> None:
        """Fenced when another process of the network says that this one is over."""
        is_process = principal is None or principal.is_process
        if self.own and is_process and frame.code == CODE:
            raise Fenced(frame.detail)
