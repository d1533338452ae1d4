"""The pages: what each of them shows, gathered for its template.

A page is made when somebody opens it; what is live on it comes by events (static/*.js).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from onyx.client_values import ProfileInfo
from onyx.errors import RequestFailed
from onyx.gateway.api import status_of
from onyx.gateway.call import Call
from onyx.gateway.refusals import Refused
from onyx.gateway.sessions import Answers
from onyx.gateway.trace_picture import TracePicture
from onyx.message_way import way_of
from onyx.registration_client import Result
from overlay.delivery_policy import WHEN_FULL
from overlay.topology import Topology, parse_topology

PROFILES_SHOWN = 200
SHOWN_BYTES = 4_000  # of a dead letter
EXAMPLE_PROFILE = """\
for $n in $msg/nitf
where $n/head/pubdata/@edition.area = "SF"
return <stock_news>{$n/body/body.head/hedline}</stock_news>"""
EXAMPLE_MESSAGE = """\
<nitf>
  <head><pubdata edition.area="SF"/></head>
  <body><body.head><hedline>Markets calm</hedline></body.head></body>
</nitf>"""

Context: TypeAlias = Mapping[str, Any]
Page: TypeAlias = tuple[str, Callable[[Call], Awaitable[Context]]]
"""A template, and what it is given."""


async def show_map(call: Call) -> Context:
    call.check_operates()
    topology, _ = await _topology(call)
    return {"topology": topology}


async def show_brokers(call: Call) -> Context:
    call.check_operates()
    topology, _ = await _topology(call)
    found = await call.session.ask_all("statistics")
    archives = {
        node: said["archive"]
        for node, said in found.items()
        if said and "directory" in said.get("archive", {})
    }
    labels = {broker.id: broker.label for broker in topology.brokers}
    rows = [(node, labels.get(node), status_of(said)) for node, said in found.items()]
    return {"rows": rows, "archives": archives}


async def show_broker(call: Call) -> Context:
    call.check_operates()
    topology, _ = await _topology(call)
    name = _broker(topology, call.path["broker"])
    statistics = await call.session.ask(topology.where(name), "statistics")
    cuts = statistics["query"].get("transformation", {}).get("links", {})
    formats = statistics["data"]["formats"]
    links = []
    for other in topology.neighbours(name):
        link, cut = topology.link(name, other), cuts.get(other, {})
        links.append(
            {
                "other": other,
                "format": formats.get(other, {}).get("format", link.format),
                "why": formats.get(other, {}).get("why", "as the topology says"),
                "latency_ms": link.latency_ms,
                "crossings": statistics["data"]["crossings"].get(other, 0),
                "cut": cut.get("cut", 0),
                "saved": cut.get("bytes_saved", 0),
            }
        )
    node = topology.broker(name)
    return {"broker": node, "status": status_of(statistics), "links": links, "said": statistics}


async def show_link(call: Call) -> Context:
    call.check_operates()
    topology, _ = await _topology(call)
    a, b = (_broker(topology, call.path[end]) for end in ("broker", "other"))
    if b not in topology.neighbours(a):
        raise Refused(404, "unknown-link", f"there is no link {a} - {b}")
    directions: list[Context] = []
    for here, there in ((a, b), (b, a)):
        about = {"link": there}
        try:
            routing = await call.session.ask(topology.where(here), "routing.show", about)
            cut = await call.session.ask(topology.where(here), "transform.show", about)
        except RequestFailed as failed:
            directions.append({"here": here, "there": there, "failed": failed.reason})
            continue
        directions.append({"here": here, "there": there, "routing": routing, "cut": cut})
    return {"a": a, "b": b, "link": topology.link(a, b), "directions": directions}


async def show_sources(call: Call) -> Context:
    return {"sources": await call.session.client.sources()}


async def show_source(call: Call) -> Context:
    return {"source": await call.session.client.source(call.path["source"])}


async def show_profiles(call: Call) -> Context:
    query = call.request.query_params
    about = {
        "user": query.get("user", call.session.user_name),
        "after": query.get("after", ""),
        "texts": True,
    }
    page = await call.session.client.call("profile.list", about)
    found = [ProfileInfo.from_result(entry) for entry in page["profiles"][:PROFILES_SHOWN]]
    more = page["more"] or len(page["profiles"]) > PROFILES_SHOWN
    return {"profiles": found, "user": about["user"], "after": found[-1].id if more else ""}


async def show_profile(call: Call) -> Context:
    profile = await call.session.client.profile(call.path["profile"])
    return {"profile": profile, "when_full": WHEN_FULL}


async def show_playground(call: Call) -> Context:
    text, profile = EXAMPLE_PROFILE, call.request.query_params.get("profile", "")
    if profile:
        text = (await call.session.client.profile(profile)).text or ""
    sources = await call.session.client.sources()
    return {"text": text, "message": EXAMPLE_MESSAGE, "profile": profile, "sources": sources}


async def show_trace(call: Call) -> Context:
    call.check_operates()
    sources = await call.session.client.sources()
    return {"sources": sources, "message": EXAMPLE_MESSAGE}


async def draw_trace(call: Call) -> Context:
    """A part of a page: the way of the message of a JSON body."""
    call.check_operates()
    addresses = await call.session.client.brokers()
    source = await call.session.client.source(call.text("source"))

    async def ask(broker: str, verb: str, about: Mapping[str, object]) -> Result:
        return await call.session.ask(addresses[broker], verb, about)

    message, media_type = call.text("message").encode(), call.text("media_type")
    answers = await way_of(ask, source.root, source.id, message, media_type)
    return {"source": source, "picture": TracePicture.of(answers), "size": len(message)}


async def show_changes(call: Call) -> Context:
    call.check_operates()
    session = call.session
    _, shape = await _topology(call)
    progress = await session.client.plan_progress()
    statistics = await session.client.statistics()
    return {
        "shape": shape,
        "progress": progress,
        "auto": await session.client.auto_plan(),
        "drains": statistics["drains"],
        "placement": statistics["placement"],
        "moves": statistics["moves"],
        "shares": statistics["shares"],
    }


async def show_dead(call: Call) -> Context:
    name = call.session.user_name
    found = await call.session.ask_all("dead.list", {"user": name} if name else {})
    letters = [{"node": node, **letter} for node, letter in _letters(found)]
    letters.sort(key=lambda letter: -letter["at"])
    silent = [node for node, answer in found.items() if answer is None]
    return {"letters": letters, "silent": silent}


async def show_letter(call: Call) -> Context:
    processes = await call.session.client.processes()
    node, about = call.path["node"], {"id": call.path["letter"]}
    if node == processes.registration:
        letter = await call.session.client.call("dead.show", about)
    elif node in processes.brokers:
        letter = await call.session.ask(processes.brokers[node], "dead.show", about)
    else:
        raise Refused(404, "unknown-node", f"there is no process {node}")
    data = bytes(letter["data"])[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return {"node": node, "letter": letter, "data": data}


PAGES: Mapping[str, Page] = {
    "/": ("map.html", show_map),
    "/brokers": ("brokers.html", show_brokers),
    "/brokers/{broker}": ("broker.html", show_broker),
    "/links/{broker}/{other}": ("link.html", show_link),
    "/sources": ("sources.html", show_sources),
    "/sources/{source}": ("source.html", show_source),
    "/profiles": ("profiles.html", show_profiles),
    "/profiles/{profile}": ("profile.html", show_profile),
    "/playground": ("playground.html", show_playground),
    "/trace": ("trace.html", show_trace),
    "/changes": ("changes.html", show_changes),
    "/dead": ("dead.html", show_dead),
    "/dead/{node}/{letter}": ("letter.html", show_letter),
}
NAVIGATION = (
    ("/", "Map"),
    ("/brokers", "Brokers"),
    ("/sources", "Sources"),
    ("/profiles", "Profiles"),
    ("/playground", "Playground"),
    ("/trace", "Trace"),
    ("/changes", "Plans"),
    ("/dead", "Dead letters"),
)


async def _topology(call: Call) -> tuple[Topology, Result]:
    """As the network has it now, and how far a change of it is."""
    shape = await call.session.client.call("topology.show")
    return parse_topology(shape["text"], "the running network"), shape


def _broker(topology: Topology, name: str) -> str:
    if name not in topology.broker_ids:
        raise Refused(404, "unknown-broker", f"there is no broker {name}")
    return name


def _letters(found: Answers) -> list[tuple[str, Mapping[str, Any]]]:
    answers = [(node, answer) for node, answer in found.items() if answer]
    return [(node, letter) for node, answer in answers for letter in answer["letters"]]


# --- what templates write ---------------------------------------------------------------------


def bytes_text(number: float) -> str:
    """12 B, 3.4 kB, 5.6 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}" if unit != "B" else f"{number:g} B"


def count_text(number: float) -> str:
    return f"{number:,}"


def time_text(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S Z")
