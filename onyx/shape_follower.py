"""Following the shape of a network: which of its brokers have to run now.

The registration service knows; whoever runs the processes asks it now and then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from onyx.errors import UserError
from onyx.registration_client import RegistrationClient
from overlay.topology import Topology, TopologyError, parse_topology

FOLLOW_SECONDS = 1.0

log = logging.getLogger("onyx.launcher")


async def follow_shape(registration: str, changed: Callable[[Topology], Awaitable[None]]) -> None:
    """Call ``changed`` with the network at "host:port", with all brokers that have to run, when
    others have to run than before; for ever.  What fails is tried again."""
    known = (0, True)
    while True:
        try:
            async with RegistrationClient(registration) as client:
                while True:
                    progress = await client.call("topology.progress")
                    found = progress["version"], progress["stage"] == "settled"
                    if found != known:
                        answer = await client.call("topology.processes")
                        await changed(parse_topology(answer["text"], "the running network"))
                        known = found
                    await trio.sleep(FOLLOW_SECONDS)
        except (UserError, TopologyError) as error:
            log.warning("%s", error)
        await trio.sleep(FOLLOW_SECONDS)
