"""The application: routes of the API and of the pages, in front of one network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

import jinja2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from onyx.errors import UserError, leaves
from onyx.gateway.api import OPERATIONS
from onyx.gateway.call import Call, Gateway, json_of
from onyx.gateway.guard import Guard
from onyx.gateway.pages import (
    NAVIGATION,
    PAGES,
    Page,
    bytes_text,
    count_text,
    draw_trace,
    time_text,
)
from onyx.gateway.refusals import Refused, refusal_of

FOLDER = Path(__file__).parent


def application(gateway: Gateway) -> ASGIApp:
    """All of it, behind its guard."""
    templates = _templates()

    def page(path: str, of: Page) -> Route:
        template, gather = of

        async def endpoint(request: Request) -> Response:
            async def show(call: Call) -> Response:
                context = await gather(call)
                return _render(templates, request, template, 200, call=call, **context)

            try:
                return await _answered(gateway, request, show)
            except Refused as refused:
                if refused.status == HTTPStatus.UNAUTHORIZED and gateway.options.is_open:
                    return RedirectResponse("/sign-in", 303)
                return _render(templates, request, "refused.html", refused.status, refused=refused)

        return Route(path, endpoint)

    async def trace(request: Request) -> Response:
        async def show(call: Call) -> Response:
            context = await draw_trace(call)
            return _render(templates, request, "trace_picture.html", 200, **context)

        return await _answered(gateway, request, show)

    async def show_sign_in(request: Request) -> Response:
        return _render(templates, request, "sign_in.html", 200)

    routes = [
        *(_api_route(gateway, operation.path, operation.method, operation.answer)
          for operation in OPERATIONS),
        *(page(path, of) for path, of in PAGES.items()),
        Route("/parts/trace", trace, methods=["POST"]),
        Route("/sign-in", show_sign_in),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
    ]  # fmt: skip

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = "not-found" if error.status_code == 404 else "method-not-allowed"
        refused = Refused(error.status_code, code, error.detail)
        if request.url.path.startswith("/v1/"):
            return refused.response()
        return _render(templates, request, "refused.html", refused.status, refused=refused)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return error.response()

    handlers = {HTTPException: unrouted, Refused: refused}
    return Guard(
        Starlette(routes=routes, exception_handlers=handlers), gateway.options, gateway.traffic
    )


def _api_route(
    gateway: Gateway, path: str, method: str, answer: Callable[[Call], Awaitable[Response]]
) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _answered(gateway, request, answer)

    return Route(path, endpoint, methods=[method])


async def _answered(
    gateway: Gateway, request: Request, answer: Callable[[Call], Awaitable[Response]]
) -> Response:
    """In the session of whoever asks; what the network refuses is Refused."""
    try:
        async with gateway.session_of(request) as session:
            return await answer(Call(gateway, request, session, await json_of(request)))
    except (UserError, BaseExceptionGroup) as error:
        found = leaves(error)
        known = [each for each in found if isinstance(each, UserError)]
        if len(known) < len(found):
            raise
        raise refusal_of(known[0]) from None


def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(FOLDER / "templates")
    templates = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(bytes=bytes_text, count=count_text, time=time_text)
    templates.globals["navigation"] = NAVIGATION
    return templates


def _render(
    templates: jinja2.Environment,
    request: Request,
    template: str,
    status: int,
    /,
    **context: object,
) -> Response:
    text = templates.get_template(template).render(path=request.url.path, **context)
    return HTMLResponse(text, status)
