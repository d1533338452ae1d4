"""Lost stores: whether whoever answers still has what they have acknowledged.

Each tells in its hello what it has of every channel (journal.py).  One whose store was emptied, or
is an older copy, tells less than it has acknowledged::

    B2 ── frames 1 .. 7 ──> B3        B3 acknowledges 7, and its store goes
    B2 <── hello, nothing ─ B3        nobody else has profiles, routing queries, messages of before

It must not go on as if nothing had been: others take for granted what it knew, and messages for
whoever is behind it would end there unseen.  Both are told, nothing is sent, what waits goes on
waiting.  Within one run of a process it is no proof: a hello may be older than acknowledgements
that come over the connection before it.  Nor are a few messages that have left early
(early_leaving.py) proof of anything.

A registration service that an operator has told to rebuild its catalog says so, and is believed
(frames.py).

A source looks at its broker likewise, and ends: messages that it was told to be safe are not there.
It may have lost its own memory, which is nobody's business.  A user's positions are looked at where
they attach to mailboxes, whose numbers are no channel's (onyx/broker/deliveries/mailboxes.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.frames import Hello
from overlay.link.journal import SUCCESSOR, Journal
from overlay.tree_name import root_of

STORE_LOST = "store-lost"
_WITH_STORES = ("broker", "registration")


def check_store(role: str, identity: str, journal: Journal, hello: Hello) -> None:
    """The process ``identity`` meets a peer; a fatal ProtocolError if one of the two has less than
    it had."""
    if hello.role not in _WITH_STORES:
        return
    taken = {(Flow(flow), key): number for flow, key, number in hello.received}
    if role in _WITH_STORES:
        _check_own(f"{role}/{identity}", journal, taken)
    is_anew = hello.is_anew and hello.role == "registration"
    if journal.instance not in (hello.instance, SUCCESSOR) and not is_anew:
        for name, channel in journal.sending.items():
            number = taken.get(name, channel.floor if taken and role in _WITH_STORES else 0)
            if number < channel.floor:
                known = f"{number} of {channel.floor} frames of channel {name[1]!r}"
                raise _lost(journal.peer, f"it has {known} that it has acknowledged")
    journal.instance = hello.instance


def _check_own(peer: str, journal: Journal, taken: Mapping[tuple[Flow, str], int]) -> None:
    """Whether the journal knows of all that its peer has of it."""
    is_new = not journal.sending and not journal.receiving
    for name, number in taken.items():
        channel = journal.sending.get(name)
        if channel is None and not is_new:
            continue  # forgotten with its tree, by this end first
        last = 0 if channel is None else channel.last
        if channel is not None and root_of(name[1]) != peer.partition("/")[2]:
            last = journal.may_have(channel)
        if number > last:
            known = f"{journal.peer} has {number} frames of channel {name[1]!r} from it, it {last}"
            raise _lost(peer, known)


def lost_detail(whose: str, sign: str) -> str:
    return f"the store of {whose} was emptied, or is an older copy ({sign})"


def _lost(peer: str, sign: str) -> ProtocolError:
    return ProtocolError(STORE_LOST, lost_detail(peer, sign), fatal=True)
