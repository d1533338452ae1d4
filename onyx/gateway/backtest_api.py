"""What can be asked of a gateway about backtests: to begin, follow and end them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse, Response

from onyx.gateway.backtests import Backtest
from onyx.gateway.call import Call
from onyx.gateway.operation import Operation
from onyx.gateway.refusals import Refused


async def begin_backtest(call: Call) -> Response:
    """The first page is read before it is answered, so that what is refused is said at once."""
    session, trials = call.session, call.gateway.trials
    profile, now = call.text("profile"), time.time()
    since, until = _time(call, "since", 0.0), min(_time(call, "until", now), now)
    await trials.ask({"profile": profile})  # Refused, with its place
    source = await session.client.source(call.text("source"))

    async def read(after: str) -> Mapping[str, Any]:
        span = {"since": since, "until": until, "after": after}
        return await session.ask(source.address, "archive.read", {"source": source.id, **span})

    page = await read("")
    backtest = session.backtests.add(profile, source.id, since, until)

    async def run() -> None:
        await backtest.run(page, read, trials.ask)

    session.start(run)
    headers = {"Location": f"/v1/backtests/{backtest.id}"}
    return JSONResponse(backtest.said(), 201, headers)


async def list_backtests(call: Call) -> Response:
    return JSONResponse({"backtests": [each.said() for each in call.session.backtests.all()]})


async def show_backtest(call: Call) -> Response:
    return JSONResponse(_asked(call).said())


async def end_backtest(call: Call) -> Response:
    call.session.backtests.end(call.path["backtest"])
    return Response(status_code=204)


def _asked(call: Call) -> Backtest:
    return call.session.backtests.one(call.path["backtest"])


def _time(call: Call, name: str, default: float) -> float:
    """Seconds of the epoch; UTC, where it does not say."""
    if name not in call.said:
        return default
    try:
        at = datetime.fromisoformat(call.text(name))
    except ValueError:
        reason = f"{name!r}: expected a time as 2026-11-21T17:30Z"
        raise Refused(400, "bad-argument", reason) from None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


_NONE = {404: "there is none"}
BACKTEST_OPERATIONS = (
    Operation(
        "POST",
        "/v1/backtests",
        "Try a profile on the archive of a source, in the background",
        begin_backtest,
        body={
            "profile": "a text in XQuery or SPARQL",
            "source": "whose messages, by its id or its name",
            "since": "published then or later, as 2026-11-21T17:30Z (default: all)",
            "until": "published before (default: now)",
        },
        required=("profile", "source"),
        media_type="application/json",
        answers={
            201: "it runs: its id, state, share, figures, samples",
            403: "they may not read that archive",
            404: "there is no such source",
            422: "refused: the profile with its place; no-archive",
            503: "too many are running",
        },
    ),
    Operation(
        "GET",
        "/v1/backtests",
        "List one's backtests, the latest first; they go with one's session",
        list_backtests,
        answers={200: "backtests"},
    ),
    Operation(
        "GET",
        "/v1/backtests/{backtest}",
        "Show how far a backtest is, and what came out",
        show_backtest,
        answers={200: "state is running, done or failed; share from 0 to 1", **_NONE},
    ),
    Operation(
        "DELETE",
        "/v1/backtests/{backtest}",
        "End a backtest, and forget it",
        end_backtest,
        answers={204: "it is gone", **_NONE},
    ),
)
