"""Renewal: a process away from the authority gets a new certificate before its own is over.

The key is new, made here, and goes nowhere; the network signs a request for the principal that the
connection shows (``cert.renew``).  The file is replaced as a whole, and read again by all who use
it.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from onyx.data_directory import write_atomically
from onyx.errors import NotAuthenticated, UserError
from onyx.identity.known_networks import credentials_for, use_credentials
from onyx.registration_client import RegistrationClient, Where, addresses_of
from overlay import verbs
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.validity import Certificate

LOOK_SECONDS = 3600.0  # between two looks
AGAIN_SECONDS = 60.0  # at least, after a refusal

log = logging.getLogger("onyx.process")


async def renew(credentials: Credentials, where: Where) -> Certificate:
    """Ask the registration service for a certificate in place of the one that is shown to it, and
    put it into the file.  RequestFailed "too-soon" before half of the life is over, "no-authority"
    where the service cannot sign; UserError."""
    # It takes long to load.
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    from onyx.identity.authority import credentials_of, request_for  # noqa: PLC0415
    from onyx.identity.signing import SignatureCheck  # noqa: PLC0415

    if credentials.own is None:
        raise NotAuthenticated(f"{credentials.path} has no certificate that could be renewed")
    uri = credentials.principal.uri(credentials.network)
    key = ec.generate_private_key(ec.SECP256R1())
    with use_credentials(credentials):
        async with RegistrationClient(where) as client:
            answer = await client.ask(verbs.CertRenew(request=request_for(uri, key)))
    SignatureCheck(credentials.authorities.encode()).holder(answer.certificates)
    text = credentials_of(uri, key, answer.certificates.encode("ascii"))
    file = credentials.path.resolve()  # of a link it is the file that is replaced
    await anyio.to_thread.run_sync(partial(_put, file, text))
    credentials.refresh()
    return credentials.own


def _put(file: Path, text: bytes) -> None:
    """CredentialsError, and the file stays, where the text holds no credentials."""
    tried = file.with_name(f".{file.name[:64]}.new")
    write_atomically(tried, text, mode=0o600)
    try:
        Credentials(tried)
        tried.replace(file)
    finally:
        tried.unlink(missing_ok=True)


async def keep_renewed(credentials: Credentials, where: Where) -> None:
    """Renew when it is time, for ever.  Nothing is done where the authority is beside the file:
    its own process renews what is there."""
    said = ""
    while not credentials.is_beside_authority:
        own, again = credentials.own, LOOK_SECONDS
        now = credentials.wall()
        if own is not None and now >= own.renew_at:
            try:
                new = await renew(credentials, where)
                log.info("%s has a new certificate", credentials.principal)
                said, again = "", max(new.renew_at - now, AGAIN_SECONDS)
            except (UserError, CredentialsError, OSError) as error:
                if str(error) != said:
                    log.warning("the certificate is not renewed: %s", error)
                said, again = str(error), max((own.until - now) / 20, AGAIN_SECONDS)
        elif own is not None:
            again = own.renew_at - now
        await anyio.sleep(min(again, LOOK_SECONDS))


async def keep_shown_renewed(where: Where) -> None:
    """The same for what is shown to the registration service, in this task or by the account."""
    shown = credentials_for(*addresses_of(where)[0])
    if shown is not None:
        await keep_renewed(shown, where)
