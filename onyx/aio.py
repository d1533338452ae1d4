"""DataSource and User for programs on asyncio: those of ``onyx``, which run there as on Trio.

::

    from onyx.aio import DataSource, User

    source = await DataSource.register("127.0.0.1:7000", name="weather", key="weather")
    async with source:
        print((await source.publish(b"<report/>")).accepted)

    async with User("127.0.0.1:7000", "ada") as user:
        profile = await user.add_profile("//report", key="reports")
        async for delivery in user.results(profile.id):
            print(delivery.results)

A block is entered and left by the same task, and its tasks are those of AnyIO: what is cancelled is
over when its ``await`` is.
"""

from __future__ import annotations

from onyx.clients import User
from onyx.data_source import DataSource
from onyx.registration_client import RegistrationClient
from onyx.results import Results

__all__ = ["DataSource", "RegistrationClient", "Results", "User"]
