"""One valid frame of every type, and strategies that make any valid frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Meta
from msgspec.structs import fields, replace

from overlay.delivery_policy import WHEN_FULL
from overlay.link.carried_message import CarriedMessage
from overlay.link.frame import FRAME_TYPES, OLDEST_VERSION, PROTOCOL_VERSION, Frame
from overlay.link.frame_fields import CLAIMED_SEQUENCE_MAX
from overlay.link.frames import (
    KEYS_MAX,
    AcceptedBefore,
    AccessAnnounced,
    Ack,
    Attach,
    Audited,
    AuditMarks,
    BranchReady,
    CatalogTold,
    CatalogWanted,
    Deliveries,
    DeliveryPolicies,
    Detached,
    DictionaryHeld,
    DictionaryTrained,
    ErrorFrame,
    HandedOver,
    HandoverWanted,
    Hello,
    KeysReleased,
    LinkReported,
    LiveMarker,
    LiveReached,
    Message,
    MessageAgain,
    Missed,
    MoveEnded,
    NeedsDelta,
    Numbered,
    Observed,
    PartitionsMatched,
    PassedOn,
    Ping,
    PlaceProfile,
    PlaceProfiles,
    PlanInForce,
    Pong,
    ProfileReleased,
    ProfilesChanged,
    ProfilesHosted,
    ProfilesLive,
    ProfilesMoving,
    ProfilesPlaced,
    ProfileTaken,
    Publish,
    PublishOnce,
    Refused,
    Rejected,
    Relayed,
    ReleaseProfile,
    Request,
    Response,
    RoutingDelta,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
    Skipped,
    SourceAnnounced,
    SourceAnswered,
    SourceAsked,
    SourceChanged,
    SourceGone,
    SourceReady,
    SourceReleased,
    SourceRemoved,
    StandBy,
    StandingBy,
    Taken,
    TaxonomiesAnnounced,
    TaxonomiesInForce,
    TreeBegun,
    TreeEnded,
    TreeReady,
    Undecoded,
    WatershedMarker,
    WatershedReached,
    packed_numbers,
    packed_slots,
)
from overlay.link.message_headers import DIGEST_BYTES

ACCEPTED = 1_795_903_200_123_456
SAMPLES: tuple[Frame, ...] = (
    Hello(
        PROTOCOL_VERSION,
        "broker",
        "B1",
        "run-1",
        ["xml", "binary"],
        65_536,
        [(3, "B1", 42), (2, "B1", 7)],
        "secret",
        OLDEST_VERSION,
        ["a-feature"],
        5,
    ),
    Ack(3, "B1", 42),
    PassedOn(3, "B1", 12),
    Skipped(3, "s1", 12),
    Ping(1),
    Pong(1),
    ErrorFrame("too-long", "frame of 9 bytes announced; at most 8", True),
    Request("1", "profile.add", {"user": "Ann", "wait": True}),
    Response("1", False, {"code": "syntax", "message": "expected ']'"}),
    SourceAsked(7, "user/ann", True, b"?"),
    SourceAnswered(7, {"code": "busy", "reason": "later"}, b""),
    Relayed("B2", 7, 1, False, b"OND"),
    Observed([{"kind": "crossing", "bytes": 120}]),
    SourceAnnounced(
        *("s1", "markets", "B1", (48.1, 11.5), 2.5, 800, "quote.dtd", "dtd", "off"),
        [("text", b"EC")],
        owner="source/markets",
        base="http://markets.example/",
        taken=41,
        version=2,
        payload=b"<!--",
    ),
    AccessAnnounced(
        [("user/ann", "publish", "s1")],
        [("user/ann", b"\x07\x08", 1_800_000_000, [("own", "own")])],
        [b"\x3f\x2a"],
    ),
    Audited("operator/root", "profile.remove", "profile p1", False),
    AuditMarks([(7, 64 * "a", True)]),
    NeedsDelta("B1", 2, ['["/a","",["node ."]]'], []),
    TreeReady("B1", "s1"),
    BranchReady("B1@2", "B4@2"),
    SourceReady("s1", 2),
    SourceReleased("s1", 41),
    KeysReleased("s1", 1_800_000_000, [40], bytes(range(16))),
    SourceRemoved("s1"),
    ShapeAnnounced(2, [("B1", 0), ("B2", 2)], [("B1", "B2")], ["B3"], b'name = "n"'),
    ShapeAgreed(2),
    ShapeSettled(2),
    ShapeReached(2, 1),
    LinkReported("B2", False),
    RoutingDelta("B1", ["/quote[@symbol = 'A']"], ["//news"]),
    LiveMarker("B1", "B4", 9, ["B1", "B2"]),
    LiveReached("B1", "B4", 9, "B2", ["B1"]),
    PlaceProfile("p7", "Ann", "/quote", 1, "req-1"),
    PlaceProfiles([("p7", "Ann", "/quote"), ("p8", "Bo", "//item")]),
    CatalogWanted(["B3"], "r2"),
    CatalogTold(2, 1, 2, 1, 17, 4, "r2"),
    ProfilesHosted([("p7", "Ann", "/quote", 2, 1, False)]),
    ProfilesMoving([("p7", 4, 2)], [("p8", 3, 1, True)], "r2"),
    DeliveryPolicies([("p7", "drop-newest", 0, 1000, 60, 5, 10)]),
    ProfilesPlaced(["p7", "p8"]),
    ProfilesChanged([("p7", 2, None), ("p8", 3, "/news")]),
    ProfilesLive([("p7", 2), ("p8", 1)]),
    PlanInForce("3f2a", b'{"onyx-plan": 1}'),
    PartitionsMatched("3f2a", 100, [(0, 7), (3, 1)]),
    Undecoded("B1", "s1", 3, "dictionary", 1, b"OND", 7, ACCEPTED, b"\x00\x93\x90\x90\xc4\x00"),
    DictionaryHeld("B1", "s1", "text", 2_000_000_000),
    Publish("s1", "xml", b"<quote/>"),
    PublishOnce("s1", "xml", b"<quote/>", bytes(range(16))),
    AcceptedBefore("s1", 9, 4),
    Numbered("s1", 4, 9),
    Refused("s1", 4, "malformed", "mismatched tag", 1, 9),
    DictionaryTrained("B1", "s1", "text", b"dict"),
    TaxonomiesAnnounced(7, b"x\x9c"),
    SourceChanged(
        *("B1", "s1", 2, (48.1, 11.5), 2.5, 800, "quote.dtd", "dtd", "report"), payload=b"<!--"
    ),
    SourceGone("B1", "s1"),
    TaxonomiesInForce("B1", 7, b"x\x9c"),
    TreeBegun("B1@2"),
    TreeEnded("B1"),
    Message("B1", "s1", 3, "xml", 1, b"<quote/>", 7, ACCEPTED, b"\x00\x93\x90\x90\xc4\x00"),
    MessageAgain("B1", "s1", 3, "binary", 2, b"<quote/>", 7, ACCEPTED, b"\x00\x93\x90\x90\xc4\x00"),
    Attach([(3, "p7", 41, 0), (9, "p8", 0, 1)]),
    Deliveries("s1", 3, [3, 4], packed_slots([3, 9]), packed_numbers([42, 7]), b"<a/><bc"),
    Taken(packed_slots([3, 9]), packed_numbers([42, 7])),
    Rejected(3, 42, "exit code 1"),
    Missed(3, 50, 8),
    Detached(3, "moved", "p7 has another host broker now"),
    StandBy("p7", 5, "Ann", "/quote", 2),
    StandingBy("p7", 5, 2),
    ReleaseProfile("p7", 5, 2),
    ProfileReleased("p7", 5, 2, 10, 12, 15, 1, 77, [("s1", 40), ("s2", 0)]),
    HandoverWanted("p7", 5, 12),
    HandedOver("p7", 5, 13, True, "s1", 39, [3, 4], b"<a/><bc"),
    ProfileTaken("p7", 5, 2),
    MoveEnded("p7", 5),
    WatershedMarker("B1", "B4", 5),
    WatershedReached("B1", "B4", 5, [("s1", 40)]),
)


def place(frame: Frame) -> tuple[str, int]:
    """A key and a sequence for a sample: ("", 0) if it is unsequenced."""
    return ("B1", 43) if frame.sequenced else ("", 0)


SCALARS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=20),
    st.text(max_size=20),
    st.floats(allow_nan=False),
)
TEXT = st.text(max_size=60)
MAPS = st.dictionaries(
    TEXT,
    st.recursive(SCALARS, lambda x: st.lists(x, max_size=4) | st.dictionaries(TEXT, x, max_size=4)),
    max_size=5,
)


def _strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values for an annotation, well inside every bound."""
    if getattr(hint, "__metadata__", None):
        bound: Any = next((mark for mark in hint.__metadata__ if isinstance(mark, Meta)), Meta())
        inner = hint.__origin__
        if inner is int:
            return st.integers(bound.ge, bound.le)
        if inner is float:
            return st.floats(bound.ge, bound.le)
        if inner is bytes:
            return st.binary(max_size=min(200, bound.max_length))
        return _strategy(inner)
    arguments = get_args(hint)
    if type(None) in arguments:
        return st.none() | _strategy(next(a for a in arguments if a is not type(None)))
    if get_origin(hint) is tuple:
        return st.tuples(*(_strategy(argument) for argument in arguments))
    if get_origin(hint) is Mapping:
        return MAPS
    if get_origin(hint) is Literal:
        return st.sampled_from(arguments)
    if get_origin(hint) in (list, Sequence):
        return st.lists(_strategy(arguments[0]), max_size=5)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        bool: st.booleans(),
        bytes: st.binary(max_size=200),
    }
    return simple[hint]


def frames_of(cls: type[Frame]) -> st.SearchStrategy[Frame]:
    """Valid frames of one type."""
    hints = get_type_hints(cls, include_extras=True)
    values = {field.name: _strategy(hints[field.name]) for field in fields(cls)}
    if cls is Hello:
        values |= {
            "version": st.integers(PROTOCOL_VERSION, 2**40),
            "oldest": st.integers(0, PROTOCOL_VERSION),
            "role": st.sampled_from(["broker", "registration", "source", "subscriber", "client"]),
            "peer": st.text("abcXYZ019-._é:", min_size=1, max_size=30),
            "frame_bytes_max": st.integers(65_536, 2**40),
            "publisher": st.text("abcXYZ019-~._é:", max_size=30),
        }
    if issubclass(cls, CarriedMessage):
        later = st.dictionaries(TEXT.map("of a later release: {}".format), st.integers(0, 9))
        values["unknown"] = st.none() | later.filter(bool)
    if "headers" in values:
        values["headers"] = st.none() | st.dictionaries(TEXT, TEXT, min_size=1, max_size=3)
    if cls is DeliveryPolicies:
        numbers = st.integers(0, 1_000)
        policy = (TEXT, st.sampled_from(WHEN_FULL), *[numbers] * 3, st.integers(1, 9), numbers)
        values["policies"] = st.lists(st.tuples(*policy), max_size=3)
    if cls is PublishOnce:
        values["key"] = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)
    if cls is KeysReleased:
        numbers = st.lists(st.integers(0, CLAIMED_SEQUENCE_MAX), max_size=KEYS_MAX)
        return numbers.flatmap(lambda found: st.builds(cls, **values | _keys_of(found)))
    if cls in (Deliveries, Taken):
        columns = st.lists(
            st.tuples(st.integers(0, 2**32 - 1), st.integers(0, CLAIMED_SEQUENCE_MAX)), max_size=6
        )
        return columns.flatmap(lambda entries: _with_columns(cls, values, entries))
    if cls is Hello:  # none but a source has a publisher
        hellos = st.builds(cls, **values)
        return hellos.map(
            lambda said: said if said.role == "source" else replace(said, publisher="")
        )
    return _with_lengths(cls, values)


def _keys_of(numbers: list[int]) -> dict[str, st.SearchStrategy[Any]]:
    size = DIGEST_BYTES * len(numbers)
    return {"numbers": st.just(numbers), "payload": st.binary(min_size=size, max_size=size)}


def _with_columns(
    cls: type[Frame], values: Mapping[str, st.SearchStrategy[Any]], entries: list[tuple[int, int]]
) -> st.SearchStrategy[Frame]:
    """``slots`` and ``numbers`` go together."""
    columns = {
        "slots": st.just(packed_slots([slot for slot, _ in entries])),
        "numbers": st.just(packed_numbers([number for _, number in entries])),
    }
    return _with_lengths(cls, {**values, **columns})


def _with_lengths(
    cls: type[Frame], values: Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[Frame]:
    """``lengths``, where a frame has them, are those of the payload."""
    if "lengths" in values:
        return st.lists(st.binary(max_size=20), max_size=6).flatmap(
            lambda results: st.builds(
                cls,
                **{
                    **values,
                    "lengths": st.just([len(result) for result in results]),
                    "payload": st.just(b"".join(results)),
                },
            )
        )
    return st.builds(cls, **values)


ANY_FRAME = st.sampled_from(sorted(FRAME_TYPES)).flatmap(lambda name: frames_of(FRAME_TYPES[name]))
