"""The problem details (RFC 9457) that a gateway answers when something is not done."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse

from onyx.errors import NetworkUnreachable, RequestFailed, UsageError, UserError

PROBLEM = "application/problem+json"
STATUSES = {
    "not-authenticated": 401,
    "not-authorised": 403,
    "profile-refused": 422,
    "message-refused": 422,
    "bad-argument": 400,
    "replaced": 409,
    "ambiguous-name": 409,
    "other-content": 409,
    "change-under-way": 409,
    "disk-full": 503,
    "busy": 503,
}


class Refused(Exception):
    """A request that is answered with a ``status`` other than 200, and a ``code`` and ``reason``;
    ``more`` goes with them."""

    def __init__(self, status: int, code: str, reason: str, **more: object) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason, self.more = status, code, reason, more

    def response(self) -> JSONResponse:
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else None
        title = HTTPStatus(self.status).phrase
        problem = {"type": "about:blank", "title": title, "status": self.status}
        said: Mapping[str, object] = {"code": self.code, "reason": self.reason, **self.more}
        return JSONResponse({**said, **problem}, self.status, headers, PROBLEM)


def refusal_of(error: UserError) -> Refused:
    """What the network has said, or that it says nothing."""
    if isinstance(error, RequestFailed):
        status = STATUSES.get(error.code, 422)
        if error.code.startswith("unknown-"):
            status = 404
        elif error.code.startswith("too-many"):
            status = 429
        return Refused(status, error.code, error.reason)
    if isinstance(error, NetworkUnreachable):
        return Refused(503, "unreachable", str(error))
    status, code = (400, "usage") if isinstance(error, UsageError) else (500, "failed")
    return Refused(status, code, str(error))
