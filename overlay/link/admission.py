"""Admission: whether whoever is at the other end of a connection may say their hello."""

from __future__ import annotations

from overlay.link.errors import ProtocolError
from overlay.link.frames import Hello
from overlay.link.principal import NOBODY
from overlay.link.session import Session


def check_principal(session: Session, former: Session | None, hello: Hello) -> None:
    """ProtocolError unless the peer may say this hello; of a peer that is here already
    (``former``) only the same principal may be a newer connection."""
    principal = session.principal
    if principal is None:
        return
    peer = f"{hello.role}/{hello.peer}"
    if session.dialled:
        if not (principal.is_process and principal.may_say(hello.role, hello.peer)):
            detail = f"{peer} answered with the certificate of {principal}"
            raise ProtocolError("wrong-peer", detail, fatal=True)
    elif principal == NOBODY:
        detail = f"who wants to be {peer} has shown no certificate"
        raise ProtocolError("not-authenticated", detail, fatal=True)
    elif not principal.may_say(hello.role, hello.peer):
        raise ProtocolError("not-authorised", f"{principal} may not be {peer}", fatal=True)
    elif former is not None and former.principal != principal:
        detail = f"{principal} may not take the place of {peer}, who is here as another"
        raise ProtocolError("not-authorised", detail, fatal=True)
