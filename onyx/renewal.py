"""Renewal: a process away from the authority gets a new certificate before its own is over.

The key is new, made here, and goes nowhere; the network signs a request for the principal that the
connection shows (``cert.renew``).  The file is replaced as a whole, and read again by all who use
it.  Of processes that share a file one asks, which holds the lock of the new file beside it; the
others find the new certificate when that one is done.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from onyx.errors import NetworkUnreachable, NotAuthenticated, UserError, file_errors
from onyx.identity.known_networks import credentials_for, use_credentials
from onyx.registration_client import RegistrationClient, Where, addresses_of
from overlay import verbs
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.store_head import sync_directory
from overlay.link.validity import Certificate

LOOK_SECONDS = 3600.0  # between two looks
AGAIN_SECONDS = 60.0  # at least, after a refusal
BUSY_SECONDS = 0.2  # between two looks whether another process is done
ASK_SECONDS = 20.0  # at most, also while the block ends in which it is asked

log = logging.getLogger("onyx.process")


async def renew(credentials: Credentials, where: Where) -> Certificate:
    """Ask the registration service for a certificate in place of the one that is shown to it, and
    put it into the file; the one that another process has put there meanwhile is as good.
    RequestFailed "too-soon" before half of the life is over, "no-authority" where the service
    cannot sign; UnwritableOutput, before anybody is asked; UserError."""
    # It takes long to load.
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    from onyx.identity.authority import credentials_of, request_for  # noqa: PLC0415
    from onyx.identity.signing import SignatureCheck  # noqa: PLC0415

    if (former := credentials.own) is None:
        raise NotAuthenticated(f"{credentials.path} has no certificate that could be renewed")
    file = credentials.path.resolve()  # of a link it is the file that is replaced
    async with _place(file) as (new, handle):
        credentials.refresh()
        if (found := credentials.own) is not None and found != former:
            return found
        uri = credentials.principal.uri(credentials.network)
        key = ec.generate_private_key(ec.SECP256R1())
        # A certificate that was signed is not thrown away because the block of a client ends.
        with anyio.move_on_after(ASK_SECONDS, shield=True), use_credentials(credentials):
            async with RegistrationClient(where) as client:
                answer = await client.ask(verbs.CertRenew(request=request_for(uri, key)))
            SignatureCheck(credentials.authorities.encode()).holder(answer.certificates)
            text = credentials_of(uri, key, answer.certificates.encode("ascii"))
            await anyio.to_thread.run_sync(partial(_put, file, new, handle, text))
            credentials.refresh()
            return credentials.own or former
    raise NetworkUnreachable(f"no certificate was signed in {ASK_SECONDS:g} s")


@asynccontextmanager
async def _place(file: Path) -> AsyncIterator[tuple[Path, int]]:
    """The new file beside one, and its handle; it is this process' alone for the block.
    UnwritableOutput."""
    new = file.with_name(f".{file.name[:64]}.new")
    handle = _opened(file, new)
    while not _is_taken(handle, new):
        os.close(handle)
        await anyio.sleep(BUSY_SECONDS)
        handle = _opened(file, new)
    try:
        yield new, handle
    finally:
        if _is_at(handle, new):
            new.unlink()
        os.close(handle)


def _opened(file: Path, new: Path) -> int:
    """With the owner and the rights of the file, but for rights of all accounts."""
    with file_errors(file):
        of = file.stat()
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if (of.st_uid, of.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, of.st_uid, of.st_gid)
            os.fchmod(handle, stat.S_IMODE(of.st_mode) & 0o660)
        except OSError:
            os.close(handle)
            raise
    return handle


def _is_taken(handle: int, new: Path) -> bool:
    """Whether the file is this process' from now on: neither another's nor already in place."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is_at(handle, new)


def _is_at(handle: int, path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


def _put(file: Path, new: Path, handle: int, text: bytes) -> None:
    """CredentialsError, and the file stays, where the text holds no credentials."""
    with file_errors(file):
        os.ftruncate(handle, 0)  # of a process that was killed
        os.pwrite(handle, text, 0)
        os.fsync(handle)
        Credentials(new)
        new.replace(file)
        sync_directory(file.parent)


async def keep_renewed(credentials: Credentials, where: Where) -> None:
    """Renew when it is time, for ever; why that fails is logged once.  Nothing is done for a
    token, and where the authority is beside the file: its own process renews what is there."""
    said = ""
    while (own := credentials.own) is not None and not credentials.is_beside_authority:
        now = credentials.wall()
        try:
            credentials.refresh()  # another process may have renewed it
            own = credentials.own or own
            if now >= own.renew_at:
                own = await renew(credentials, where)
                log.info("%s has a new certificate", credentials.principal)
            said, again = "", max(own.renew_at - now, AGAIN_SECONDS)
        except (UserError, CredentialsError, OSError) as error:
            if str(error) != said:
                log.warning("the certificate is not renewed: %s", error)
            said, again = str(error), max((own.until - now) / 20, AGAIN_SECONDS)
        await anyio.sleep(min(again, LOOK_SECONDS))


async def keep_shown_renewed(where: Where) -> None:
    """The same for what is shown to the registration service, in this task or by the account."""
    shown = credentials_for(*addresses_of(where)[0])
    if shown is not None:
        await keep_renewed(shown, where)
