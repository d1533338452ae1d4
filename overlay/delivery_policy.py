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
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from overlay.unfit import in_words

DROP_OLDEST: Final = "drop-oldest"
DROP_NEWEST: Final = "drop-newest"
DISCONNECT: Final = "disconnect"
WhenFull: TypeAlias = Literal["drop-oldest", "drop-newest", "disconnect"]
WHEN_FULL = get_args(WhenFull)
SECONDS_MAX = 10 * 366 * 24 * 3600
ATTEMPTS_MAX = 1_000


Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, le=SECONDS_MAX)]


def _option(name: str, description: str, metavar: str = "N") -> Meta:
    """``name``: of the command line's."""
    return Meta(description=description, extra={"option": name, "metavar": metavar})


class DeliveryPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How deliveries of one profile wait, as its user asks."""

    when_full: Annotated[
        WhenFull,
        Meta(description="which deliveries go where too many wait"),
    ] = DROP_OLDEST
    bytes_max: Annotated[
        Amount, _option("max-bytes", "bytes that wait (0: as much as the network allows)")
    ] = 0
    deliveries_max: Annotated[
        Amount, _option("max-deliveries", "deliveries that wait (0: any number)")
    ] = 0
    ttl_s: Annotated[
        Seconds,
        _option("ttl", "how long a delivery waits (0: as long as the network allows)", "SECONDS"),
    ] = 0
    attempts_max: Annotated[
        int,
        Meta(ge=1, le=ATTEMPTS_MAX),
        _option("attempts", "at giving out a delivery that is rejected"),
    ] = 5
    retry_s: Annotated[
        Seconds, _option("retry", "until a rejected delivery is given again", "SECONDS")
    ] = 10

    @property
    def is_bounded(self) -> bool:
        """Whether there are bounds besides the network's."""
        bounds = (self.when_full, self.bytes_max, self.deliveries_max)
        return bounds != (DROP_OLDEST, 0, 0)

    def changed(self, said: Mapping[str, object]) -> DeliveryPolicy:
        """The policy with these fields; ValueError names the wrong one."""
        wanted = {**asdict(self), **said}
        try:
            return msgspec.convert(wanted, DeliveryPolicy)
        except msgspec.ValidationError as error:
            raise ValueError(in_words(DeliveryPolicy, error, wanted).reason) from None


USUAL = DeliveryPolicy()
