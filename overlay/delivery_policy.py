"""DeliveryPolicy: what becomes of what waits for a profile, and of what its user rejects.

::

    message ──> full?  drop-oldest │ drop-newest │ disconnect      ``when_full``
                 │
                 v
    waiting ──> older than ``ttl_s``: it goes
                 │
                 v
    given out ──> rejected: comes again ``retry_s`` later, ``attempts_max`` times in all,
                  then it is kept aside as a dead letter

A profile without one has ``USUAL``: the network's bounds, of which the oldest goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

DROP_OLDEST, DROP_NEWEST, DISCONNECT = "drop-oldest", "drop-newest", "disconnect"
WHEN_FULL = (DROP_OLDEST, DROP_NEWEST, DISCONNECT)
SECONDS_MAX = 10 * 366 * 24 * 3600
ATTEMPTS_MAX = 1_000


class DeliveryPolicy(NamedTuple):
    """What a user asks for one profile.

    when_full       what happens to what is too much: the oldest that waits goes, or the newest is
                    not kept, or whoever takes the profile is sent away, and the oldest goes
    bytes_max       that may wait; 0: as much as the network allows, which is never exceeded
    deliveries_max  that may wait; 0: any number
    ttl_s           seconds that a delivery may wait; 0: as long as the network allows
    attempts_max    how often a delivery is given out that is rejected each time
    retry_s         seconds until it is given out again
    """

    when_full: str = DROP_OLDEST
    bytes_max: int = 0
    deliveries_max: int = 0
    ttl_s: int = 0
    attempts_max: int = 5
    retry_s: int = 10

    @property
    def is_bounded(self) -> bool:
        """Whether what waits is looked at besides the network's bounds."""
        return self[:3] != USUAL[:3]


USUAL = DeliveryPolicy()

_MOST: Mapping[str, tuple[int, int]] = {
    "bytes_max": (0, 2**53),
    "deliveries_max": (0, 2**53),
    "ttl_s": (0, SECONDS_MAX),
    "attempts_max": (1, ATTEMPTS_MAX),
    "retry_s": (0, SECONDS_MAX),
}


def policy_of(said: object) -> DeliveryPolicy:
    """The policy with these fields, by name, the others as usual; ValueError says which is not
    one, and what was expected."""
    if not isinstance(said, Mapping):
        raise ValueError(f"a policy is fields by name, not {type(said).__name__}")
    values: dict[str, Any] = dict(said)
    unknown = sorted(set(map(str, values)) - set(DeliveryPolicy._fields))
    if unknown:
        known = ", ".join(DeliveryPolicy._fields)
        raise ValueError(f"a policy has no {unknown[0]!r}; it has {known}")
    found = USUAL._replace(**values)
    if found.when_full not in WHEN_FULL:
        raise ValueError(f"when_full is {found.when_full!r}; expected {', '.join(WHEN_FULL)}")
    for name, (least, most) in _MOST.items():
        value = getattr(found, name)
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{name} is {value!r}; expected a whole number, {least} to {most}")
    return found
