"""Guard: what every request passes first, and every answer last.

A page of somebody else may make a browser send requests here, so what such a page can send without
asking is refused: by the Host header (a name that was made to point here), by Origin and
Sec-Fetch-Site, and by media types that a form can have.
"""

from __future__ import annotations

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onyx.gateway.options import GatewayOptions
from onyx.gateway.refusals import Refused
from onyx.gateway.traffic import Traffic

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TYPES = frozenset(
    {"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
)
"""What a form, or a request that is not asked about first, may say that its body is."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """In front of ``app``."""

    def __init__(self, app: ASGIApp, options: GatewayOptions, traffic: Traffic) -> None:
        self._app, self._options, self._traffic = app, options, traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        left = self._options.body_bytes_max
        began = trio.current_time()

        async def receive_some() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_long()
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._traffic.answers[message["status"]] += 1
                self._traffic.seconds.note(trio.current_time() - began)
                MutableHeaders(scope=message).update(HEADERS)
                MutableHeaders(scope=message).setdefault("Cache-Control", "no-store")
            await send(message)

        self._traffic.under_way += 1
        try:
            self._check(scope)
            await self._app(scope, receive_some, send_with_headers)
        except Refused as refused:
            await refused.response()(scope, receive, send_with_headers)
        finally:
            self._traffic.under_way -= 1

    def _check(self, scope: Scope) -> None:
        headers, options = Headers(scope=scope), self._options
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if options.hosts and name.lower() not in options.hosts:
            said = f"this gateway is not {host!r}; --host makes it known by a name"
            raise Refused(421, "wrong-host", said)
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        is_from_elsewhere = site not in (None, "same-origin", "none")
        if is_from_elsewhere and not (scope["method"] == "GET" and mode == "navigate"):
            raise Refused(403, "cross-site", "pages of other sites may not ask this")
        if scope["path"].startswith("/v1/") and is_from_elsewhere:
            raise Refused(403, "cross-site", "pages of other sites may not ask this")
        if scope["method"] not in SAFE:
            self._check_change(scope, headers, host)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > options.body_bytes_max:
            raise self._too_long()
        if self._traffic.under_way > options.requests_max + options.streams_max:
            raise Refused(503, "busy", f"{options.requests_max} requests are under way")

    def _check_change(self, scope: Scope, headers: Headers, host: str) -> None:
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            raise Refused(403, "cross-site", f"pages of {origin} may change nothing here")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind in FORM_TYPES:
            expected = "application/json, or the media type of the message"
            raise Refused(415, "media-type", f"Content-Type is {kind!r}; expected {expected}")

    def _too_long(self) -> Refused:
        return Refused(413, "too-long", f"more than {self._options.body_bytes_max:,} bytes")
