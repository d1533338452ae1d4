"""The API: what can be asked of a gateway under /v1, each declared with what it takes and gives.

The routes and the OpenAPI document (openapi.py) are both made from ``OPERATIONS``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from starlette.responses import JSONResponse, Response

from formats.media_types import XML
from onyx.cli.values import login_name
from onyx.client_values import ProfileInfo
from onyx.errors import ProfileNotAccepted
from onyx.gateway.backtest_api import BACKTEST_OPERATIONS
from onyx.gateway.call import COOKIE, Call
from onyx.gateway.event_stream import EventStream, Write
from onyx.gateway.openapi import openapi
from onyx.gateway.operation import Operation
from onyx.gateway.refusals import Refused
from onyx.gateway.result_stream import PROFILES_MAX, ResultStream, positions_in
from onyx.gateway.source_api import SOURCE_OPERATIONS
from onyx.registration_client import Result
from overlay.delivery_policy import USUAL, WHEN_FULL, DeliveryPolicy, policy_of

PAGE_MAX = 1_000  # profiles in one answer
TRACEPARENT = "traceparent"


# --- messages and results ---------------------------------------------------------------------


async def publish(call: Call) -> Response:
    source, key = call.path["source"], call.request.headers.get("publish-key", "")
    media_type = call.request.headers["content-type"]
    traced = call.request.headers.get(TRACEPARENT)
    headers = None if traced is None else {TRACEPARENT: traced}
    data = await call.request.body()
    outcome = await call.session.publish(source, data, media_type, key, headers)
    if not outcome.accepted:
        place = {"line": outcome.line, "column": outcome.column}
        raise Refused(422, outcome.code, outcome.reason, number=outcome.number, **place)
    said = {"source": source, "number": outcome.number, "is_known": outcome.is_known}
    return JSONResponse(said, 200 if outcome.is_known else 201)


async def results(call: Call) -> Response:
    profiles = list(dict.fromkeys(call.request.query_params.getlist("profile")))
    if not 1 <= len(profiles) <= PROFILES_MAX:
        raise Refused(400, "bad-argument", f"'profile': expected 1 to {PROFILES_MAX} of them")
    positions = positions_in(call.request.headers.get("last-event-id", ""))
    how = call.request.query_params.get("acknowledge", "read")
    if how not in ("read", "sent"):
        raise Refused(400, "bad-argument", "'acknowledge': expected read or sent")
    for profile in profiles:
        await call.session.client.profile(profile)  # which there must be, and be theirs
    unacknowledged = call.gateway.options.unacknowledged_max
    acknowledges = how == "sent"
    stream = ResultStream(
        call.session, profiles, positions, unacknowledged, acknowledges=acknowledges
    )
    return _streamed(call, stream.run)


async def overlay_map(call: Call) -> Response:
    call.check_operates()
    return _streamed(call, call.gateway.feed.show, packs=True)


def _streamed(call: Call, run: Callable[[Write], Awaitable[None]], packs: bool = False) -> Response:
    """In the session of whoever asks, which stays open."""
    gateway, session = call.gateway, call.session
    if gateway.traffic.streams >= gateway.options.streams_max:
        raise Refused(503, "busy", f"{gateway.traffic.streams} streams are followed already")
    gateway.traffic.streams += 1
    session.users += 1

    async def follow(write: Write) -> None:
        try:
            await session.until_ended(run, write)
        finally:
            session.users -= 1
            gateway.traffic.streams -= 1

    return EventStream(follow, packs)


# --- profiles ---------------------------------------------------------------------------------


async def list_profiles(call: Call) -> Response:
    query = call.request.query_params
    user = query.get("user", call.session.user_name)
    about = {"user": user, "after": query.get("after", ""), "texts": False}
    page = await call.session.client.call("profile.list", about)
    found = [ProfileInfo.from_result(entry) for entry in page["profiles"][:PAGE_MAX]]
    more = page["more"] or len(page["profiles"]) > PAGE_MAX
    return JSONResponse({"profiles": [_profile(info) for info in found], "more": more})


async def add_profile(call: Call) -> Response:
    text = call.text("text")
    info = await _checked(
        call,
        text,
        call.session.client.add_profile(
            text,
            user=call.text("user", call.session.user_name or login_name()),
            location=call.location(),
            key=call.text("key", ""),
            wait=call.flag("wait", True),
            policy=_policy(call.said.get("policy", {})),
        ),
    )
    headers = {"Location": f"/v1/profiles/{info.id}"}
    return JSONResponse(_profile(info), 201, headers)


async def show_profile(call: Call) -> Response:
    return JSONResponse(_profile(await call.session.client.profile(call.path["profile"])))


async def update_profile(call: Call) -> Response:
    text, profile = call.text("text"), call.path["profile"]
    change = call.session.user.update_profile(profile, text, wait=call.flag("wait", True))
    return JSONResponse(_profile(await _checked(call, text, change)))


async def remove_profile(call: Call) -> Response:
    await call.session.user.remove_profile(call.path["profile"])
    return Response(status_code=204)


async def show_policy(call: Call) -> Response:
    return JSONResponse((await call.session.user.policy(call.path["profile"]))._asdict())


async def put_policy(call: Call) -> Response:
    return await _set_policy(call, USUAL)


async def change_policy(call: Call) -> Response:
    return await _set_policy(call, await call.session.user.policy(call.path["profile"]))


async def _set_policy(call: Call, base: DeliveryPolicy) -> Response:
    policy = _policy(call.said, base)
    await call.session.user.set_policy(call.path["profile"], policy)
    return JSONResponse(policy._asdict())


def _policy(said: object, base: DeliveryPolicy = USUAL) -> DeliveryPolicy:
    try:
        return policy_of({**base._asdict(), **said} if isinstance(said, Mapping) else said)
    except ValueError as error:
        raise Refused(400, "bad-argument", f"no policy: {error}") from None


async def _checked(call: Call, text: str, asked: Awaitable[ProfileInfo]) -> ProfileInfo:
    """What the network says; of a text that it refuses also where, and what was expected."""
    try:
        return await asked
    except ProfileNotAccepted as refusal:
        await call.gateway.trials.ask({"profile": text})  # Refused, by the same parser
        raise refusal from None


def _profile(info: ProfileInfo) -> dict[str, Any]:
    return {**asdict(info), "policy": info.policy._asdict()}


# --- explaining -------------------------------------------------------------------------------


async def explain(call: Call) -> Response:
    question: dict[str, object] = {"profile": call.text("profile")}
    if "message" in call.said:
        question["message"] = call.text("message").encode()
        question["media_type"] = call.text("media_type", XML)
        question["base"] = call.text("base", "")
    return JSONResponse(await call.gateway.trials.ask(question))


async def why_not(call: Call) -> Response:
    info = await call.session.client.profile(call.text("profile"))
    message, media_type = call.text("message").encode(), call.text("media_type", XML)
    question = {"profile": info.text, "message": message, "media_type": media_type}
    found = await call.gateway.trials.ask(question)
    names = ("matched", "failure", "results")
    return JSONResponse({"profile": info.id, **{name: found[name] for name in names}})


# --- the network ------------------------------------------------------------------------------


async def show_status(call: Call) -> Response:
    call.check_operates()
    found = await call.session.ask_all("statistics")
    return JSONResponse({"nodes": {node: status_of(said) for node, said in found.items()}})


def status_of(said: Result | None) -> dict[str, Any]:
    """Of a process, in a few figures."""
    if said is None:
        return {"state": "away"}
    data = said.get("data", {})
    figures: dict[str, Any] = {
        "state": "here",
        "waiting_bytes": said["links"]["backlog_bytes"],
        "longest_turn_ms": said["node"]["longest_turn_ms"],
        "dead_letters": said["dead"]["kept"],
    }
    if "catalog" in said:
        return {**figures, "profiles": said["catalog"]["profiles"]}
    counted = {
        name: data.get(name, 0) for name in ("published", "received", "delivered", "refused")
    }
    crossings = data["crossings"]
    figures["waiting_bytes"] += said["mailboxes"]["stored_bytes"]
    return {**figures, **counted, "profiles": said["query"]["profiles"], "crossings": crossings}


async def sign_in(call: Call) -> Response:
    """The token is the one that this very request has shown."""
    token = call.request.headers["authorization"].partition(" ")[2]
    said = JSONResponse({"principal": call.session.principal})
    is_secure = call.gateway.options.certificate is not None
    said.set_cookie(COOKIE, token, httponly=True, secure=is_secure, samesite="strict")
    return said


async def document(call: Call) -> Response:
    return JSONResponse(openapi(OPERATIONS))


_TEXTS = {"profile": "a text in XQuery or SPARQL", "message": "a document or a graph"}
_MEDIA_TYPE = {"media_type": "of the message (default: application/xml)"}
_REFUSED = {422: "refused: code, reason, line, column and, of a profile, what was expected"}
_NONE = {404: "there is none"}

_POLICY_PATH = "/v1/profiles/{profile}/policy"
_POLICY = {
    "when_full": f"what happens to what is too much: {', '.join(WHEN_FULL)}",
    "bytes_max": "that wait; 0: as much as the network allows",
    "deliveries_max": "that wait; 0: any number",
    "ttl_s": "seconds that a delivery waits; 0: as long as the network allows",
    "attempts_max": "how often what is rejected is given out",
    "retry_s": "seconds until it is given out again",
}

OPERATIONS = (
    Operation(
        "POST",
        "/v1/sources/{source}/messages",
        "Publish a message",
        publish,
        headers={
            "Publish-Key": "the same again publishes nothing, and gives the number that it has",
            "traceparent": "of W3C Trace Context: the message is traced",
        },
        media_type="*/*",
        answers={201: "accepted, with its number", 200: "known before by its key", **_REFUSED},
    ),
    Operation(
        "GET",
        "/v1/results",
        "Follow the results of profiles, as Server-Sent Events",
        results,
        query={
            "profile": f"an id; 1 to {PROFILES_MAX} times",
            "acknowledge": "read (the default): by Last-Event-ID; sent: when it is written",
        },
        headers={"Last-Event-ID": "all through there are acknowledged, and it goes on behind it"},
        answers={200: "events open, delivery and ended", **_NONE},
    ),
    Operation(
        "GET",
        "/v1/profiles",
        "List profiles",
        list_profiles,
        query={"user": "whose (default: one's own)", "after": "the id of the last one known"},
        answers={200: "profiles, and whether there are more"},
    ),
    Operation(
        "POST",
        "/v1/profiles",
        "Add a profile",
        add_profile,
        body={
            "text": _TEXTS["profile"],
            "user": "whose it is (default: one's own)",
            "location": "[latitude, longitude], for a host broker nearby",
            "key": "the same again finds the one that there is",
            "wait": "true (the default): until it is live",
            "policy": "how what waits is kept, as /v1/profiles/{profile}/policy has it",
        },
        required=("text",),
        media_type="application/json",
        answers={201: "the profile", **_REFUSED},
    ),
    Operation(
        "GET",
        "/v1/profiles/{profile}",
        "Show a profile",
        show_profile,
        answers={200: "the profile, with its text", **_NONE},
    ),
    Operation(
        "PUT",
        "/v1/profiles/{profile}",
        "Replace the text of a profile",
        update_profile,
        body={"text": _TEXTS["profile"], "wait": "true (the default): until it is live"},
        required=("text",),
        media_type="application/json",
        answers={200: "the profile", **_NONE, **_REFUSED},
    ),
    Operation(
        "DELETE",
        "/v1/profiles/{profile}",
        "Remove a profile, with what was not delivered",
        remove_profile,
        answers={204: "it is gone", **_NONE},
    ),
    Operation(
        "GET",
        _POLICY_PATH,
        "Show how what waits for a profile is kept",
        show_policy,
        answers={200: "the policy", **_NONE},
    ),
    Operation(
        "PUT",
        _POLICY_PATH,
        "Set it; what is not named is as usual",
        put_policy,
        body=_POLICY,
        media_type="application/json",
        answers={200: "the policy", **_NONE},
    ),
    Operation(
        "PATCH",
        _POLICY_PATH,
        "Change it; what is not named stays",
        change_policy,
        body=_POLICY,
        media_type="application/json",
        answers={200: "the policy", **_NONE},
    ),
    Operation(
        "POST",
        "/v1/explain",
        "Explain a profile, and try it on a message; nothing is registered or published",
        explain,
        body={**_TEXTS, **_MEDIA_TYPE, "base": "the IRI that relative ones are relative to"},
        required=("profile",),
        media_type="application/json",
        answers={200: "how it is matched; with a message, what held and the results", **_REFUSED},
    ),
    Operation(
        "POST",
        "/v1/why-not",
        "Say why a registered profile does not match a message",
        why_not,
        body={"profile": "an id", "message": _TEXTS["message"], **_MEDIA_TYPE},
        required=("profile", "message"),
        media_type="application/json",
        answers={
            200: "whether it matches, and the first part that does not hold",
            **_NONE,
            **_REFUSED,
        },
    ),
    *SOURCE_OPERATIONS,
    *BACKTEST_OPERATIONS,
    Operation(
        "GET",
        "/v1/status",
        "Show what the processes of the network do",
        show_status,
        answers={200: "by node a few figures"},
    ),
    Operation(
        "GET",
        "/v1/map",
        "Follow the network, as Server-Sent Events",
        overlay_map,
        answers={200: "events map (its shape) and tick (what has changed)"},
    ),
    Operation(
        "POST",
        "/v1/sign-in",
        "Keep the token of this request in a cookie, for the pages",
        sign_in,
        headers={"Authorization": "Bearer, and a token of the network"},
        media_type="application/json",
        answers={200: "whose it is"},
    ),
    Operation("GET", "/v1/openapi.json", "This document", document, answers={200: "OpenAPI 3.1"}),
)
