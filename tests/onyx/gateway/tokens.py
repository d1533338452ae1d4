"""Tokens of a network that runs."""

from __future__ import annotations

from onyx.registration_client import NetworkClient, RegistrationClient
from overlay.access import Token


async def issue(where: str, principal: str, secret: str) -> None:
    """A new one, which every broker knows by then."""
    digest = Token.digest_of(secret)
    asked = {"principal": principal, "digest": digest, "seconds": 600, "only": []}
    async with RegistrationClient(where) as registration:
        await registration.call("token.issue", asked)
        tokens = len((await registration.call("token.list"))["tokens"])
        for address in (await registration.brokers()).values():
            async with NetworkClient(address) as broker:
                while (await broker.call("statistics"))["access"]["tokens"] != tokens:
                    pass  # it is about to be told


async def revoke(where: str, secret: str) -> None:
    async with RegistrationClient(where) as registration:
        name = Token("", Token.digest_of(secret), 0, []).id
        await registration.call("token.revoke", {"token": name})
