"""Following the shape of a network: which of its brokers have to run now.

The registration service knows; whoever runs the processes asks it now and then, and says which of
them fail, for ``onyx status``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import trio

from onyx.errors import UserError
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.topology import Topology, TopologyError, parse_topology

FOLLOW_SECONDS = 1.0

log = logging.getLogger("onyx.launcher")


async def follow_shape(
    registration: str,
    changed: Callable[[Topology], Awaitable[None]],
    troubles: Callable[[], Mapping[str, str]] = dict,
    known: tuple[int, bool] = (0, True),
) -> None:
    """Call ``changed`` with the network at "host:port", with all brokers that have to run, when
    others have to run than before; for ever.  What fails is tried again.  ``troubles``: why a
    process is not running, by node; ``known``: the version that is known already, and whether it is
    settled."""
    while True:
        try:
            async with RegistrationClient(registration) as client:
                told: Mapping[str, str] = {}
                while True:
                    if (found_down := troubles()) != told:
                        await client.ask(verbs.ProcessesReport(down=dict(found_down)))
                        told = found_down
                    progress = await client.ask(verbs.TopologyProgress())
                    found = progress.version, progress.stage == "settled"
                    if found != known:
                        answer = await client.ask(verbs.TopologyProcesses())
                        await changed(parse_topology(answer.text, "the running network"))
                        known = found
                    await trio.sleep(FOLLOW_SECONDS)
        except (UserError, TopologyError) as error:
            log.warning("%s", error)
        await trio.sleep(FOLLOW_SECONDS)
