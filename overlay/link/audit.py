"""Audit: who has changed things of others and who was refused, told so that it can be proved.

::

    broker  ── audited ──>      registration service    changes of operators, and refusals, there
            <── audit-marks ──                          digests of entries, which the broker keeps

Entries are two chains, changes and refusals, of which each entry has the digest of the one before
it.  An entry that is altered or taken out no longer fits the next one; a chain that was cut at its
end, or made anew, does not fit what brokers and the log were told.  Numbers are of both chains.

Refusals are bounded: in PERIOD_SECONDS the first of each kind (asker, verb, code) is told at once,
all others are counted, and of more than KINDS_MAX kinds the rest as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from overlay.answers import AuditEntry, AuditMark

ENTRIES_MAX = 20_000  # changes that are kept; beyond, the oldest go
REFUSALS_MAX = 2_000
PERIOD_SECONDS = 600.0
KINDS_MAX = 32
OTHERS = ("others", "several verbs", "several codes")

Tell = Callable[[str, str, str], None]
"""(asker, verb, what is said about it)."""


def most_kept(*, refused: bool) -> int:
    """Entries of the chain."""
    return REFUSALS_MAX if refused else ENTRIES_MAX


def digest_of(entry: AuditEntry) -> str:
    """SHA-256, in hexadecimal, of an entry with the digest of the one before it."""
    said = entry.number, entry.at, entry.who, entry.what, entry.detail, entry.refused, entry.before
    return sha256(msgspec.msgpack.encode(said)).hexdigest()


def faults(
    entries: Sequence[AuditEntry], marks: Mapping[str, Sequence[AuditMark]]
) -> Iterator[str]:
    """The faults of a whole audit log, a sentence each; ``marks``: by the broker that told them."""
    for refused in (False, True):
        chain = [entry for entry in entries if entry.refused is refused]
        digests = {entry.number: digest_of(entry) for entry in chain}
        for former, entry in pairwise(chain):
            is_of_before = not (former.before or entry.before)  # as former releases wrote them
            if not is_of_before and entry.before != digests[former.number]:
                yield (
                    f"entry {entry.number} does not follow entry {former.number}: one between them "
                    f"is missing, or {former.number} was altered"
                )
        is_full = len(chain) >= most_kept(refused=refused)
        if chain and chain[0].before and not is_full:
            yield f"entries before {chain[0].number} are missing"
        for where, told in marks.items():
            for mark in told:
                if mark.refused is not refused:
                    continue
                if mark.number not in digests:
                    if not is_full or mark.number > chain[0].number:
                        yield f"entry {mark.number}, of which {where} was told, is missing"
                elif mark.digest != digests[mark.number]:
                    yield f"entry {mark.number} is another one than {where} was told of"


class Refusals:
    """``note`` each; ``tick`` now and then."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._counts: Counter[tuple[str, str, str]] = Counter()  # of this period
        self._until: float | None = None

    def note(self, who: str, what: str, code: str) -> None:
        kind = who, what, code
        if kind not in self._counts and len(self._counts) >= KINDS_MAX:
            kind = OTHERS
        self._counts[kind] += 1
        if self._counts[kind] == 1:
            self._tell(kind[0], kind[1], f"refused: {kind[2]}")

    def tick(self, now: float) -> None:
        """At its end a period tells what it has counted."""
        if not self._counts:
            return
        if self._until is None:
            self._until = now + PERIOD_SECONDS
        elif now >= self._until:
            counts, self._counts, self._until = self._counts, Counter(), None
            for (who, what, code), count in counts.items():
                if count > 1:
                    self._tell(who, what, f"refused {count - 1:,} times more: {code}")
