"""The problem details (RFC 9457) that a gateway answers when something is not done."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import JSONResponse

from formats.errors import Fault
from onyx.errors import RequestFailed, UserError, ending

PROBLEM = "application/problem+json"
TEXTS_REFUSED = ("message-refused", "profile-refused")


class Refusal(Fault, frozen=True, kw_only=True):
    """Problem details; ``number``: of a message."""

    code: str
    reason: str
    type: str
    title: str
    status: int
    number: int | UnsetType = UNSET


def problem(error: UserError, **more: object) -> JSONResponse:
    """The record of an error as far as it says something, with the code of the fault in a text that
    was sent; ``more`` goes with it."""
    _, status = ending(error.code)
    fault = error.fault
    if error.code not in TEXTS_REFUSED:
        fault = msgspec.structs.replace(fault, code=error.code, reason=error.reason)
    known = {name: said for name, said in msgspec.structs.asdict(fault).items() if said}
    about = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    said = {**known, **more, **about}
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse(said, status, headers, PROBLEM)


def media_type_refused(said: str, expected: str) -> RequestFailed:
    """The body is of another media type."""
    return RequestFailed("media-type", f"Content-Type is {said!r}; expected {expected}")


def bad_argument(where: str, expected: str) -> RequestFailed:
    """Something in a request is not what it is to be."""
    code, reason = "bad-argument", f"{where!r}: expected {expected}"
    return RequestFailed(code, reason, Fault(code, reason, expected, where=where))
