"""Verdict: is what the users got exactly what they should have got?

A delivery is known by (profile, source, number): one message for one profile.  What was delivered
is held against what was expected, result by result, by fingerprints of canonical XML:

==============  ===========================================================================
``missing``     results were expected, nothing came
``extra``       something came, nothing was expected
``twice``       the same delivery came more than once
``wrong``       other results than expected, or another number of them
``out of order``  the right results in another order than the document's
==============  ===========================================================================
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

FaultKind: TypeAlias = Literal["missing", "extra", "twice", "wrong", "out of order"]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


class DeliveryKey(NamedTuple):
    """One message for one profile; ``number`` is the message's number at its source."""

    profile: str
    source: str
    number: int


@dataclass(frozen=True, slots=True)
class Fault:
    """One delivery that is not as it should be."""

    kind: FaultKind
    key: DeliveryKey
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """``right`` deliveries with ``results`` results in all, and every fault, by key."""

    right: int
    results: int
    faults: tuple[Fault, ...]


def judge(
    expected: Mapping[DeliveryKey, Sequence[bytes]],
    delivered: Iterable[tuple[DeliveryKey, Sequence[bytes]]],
) -> Verdict:
    """Compare; values are fingerprints of results in order.

    No results expected is the same as the key not being in ``expected``.
    """
    arrived: dict[DeliveryKey, list[Sequence[bytes]]] = defaultdict(list)
    for key, results in delivered:
        arrived[key].append(results)
    faults = []
    right = 0
    results_right = 0
    for key in sorted({*arrived, *(key for key, results in expected.items() if results)}):
        fault = _fault(key, expected.get(key, ()), arrived.get(key, []))
        if fault is None:
            right += 1
            results_right += len(expected[key])
        else:
            faults.append(fault)
    return Verdict(right, results_right, tuple(faults))


def _fault(
    key: DeliveryKey, expected: Sequence[bytes], arrived: Sequence[Sequence[bytes]]
) -> Fault | None:
    if not arrived:
        return Fault("missing", key, f"{len(expected)} results expected, nothing came")
    if not expected:
        return Fault("extra", key, f"nothing expected, {len(arrived[0])} results came")
    if len(arrived) > 1:
        return Fault("twice", key, f"came {len(arrived)} times")
    wanted, got = Counter(expected), Counter(arrived[0])
    if wanted != got:
        lacking, surplus = (wanted - got).total(), (got - wanted).total()
        return Fault(
            "wrong",
            key,
            f"{len(expected)} results expected, {len(arrived[0])} came: "
            f"{lacking} lacking, {surplus} that should not be there",
        )
    if list(expected) != list(arrived[0]):
        return Fault("out of order", key, f"all {len(expected)} results, in another order")
    return None
