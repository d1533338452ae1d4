"""Links that choose their format: B4 between its parent B1 and its children B5, B6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from formats import WireFormat, encode, parse_text
from onyx.broker.broker_core import BrokerCore
from onyx.broker.packing.format_choice import MEASURED_LEAST
from overlay.link.core_context import Surroundings
from overlay.link.frames import Message, Undecoded
from overlay.network_shape import first_shape, next_shape, without_broker
from overlay.statistics import ChosenFormat
from overlay.topology import Topology, parse_topology
from tests.beside import Beside
from tests.onyx.broker.test_broker_core import Setting, delta

DTD = b"<!ELEMENT news (head+)><!ELEMENT head (#PCDATA)><!ATTLIST head kind (flash|new) #IMPLIED>"
HEADS = (b'<head kind="flash">What has come in hour %d</head>' % hour for hour in range(8))
NEWS = b"<news>" + b"".join(HEADS) + b"</news>"


def topology(of_link: str) -> Topology:
    return parse_topology(
        f"""
        name = "three"
        registration = {{id = "r1", listen = "127.0.0.1:1"}}
        broker = [
            {{id = "B1", listen = "127.0.0.1:2"}},
            {{id = "B4", listen = "127.0.0.1:3"}},
            {{id = "B5", listen = "127.0.0.1:4"}},
        ]
        link = [
            {{ends = ["B1", "B4"]}},
            {{ends = ["B4", "B5"], format = "auto", {of_link}}},
        ]
        """,
        "three",
    )


class Ticking(Setting):
    """Whatever is timed takes ``step`` seconds."""

    def __init__(self, of_link: str, step: float = 0.0, schema: bytes = DTD) -> None:
        super().__init__(topology(of_link))
        ticks: Iterator[float] = (number * step for number in count())
        self.beside = Beside(
            "broker/B4",
            BrokerCore(self.topology, "B4", "run1", (), Surroundings(lambda: next(ticks))),
        )
        self.registration = self.beside.peer("registration", "r1")
        self.brokers = {name: self.beside.peer("broker", name) for name in ("B1", "B5")}
        self.announce(schema=schema)
        self.brokers["B5"].send("B1", delta("/news"))
        self.sent = 0

    def send(self, times: int, wire_format: WireFormat = WireFormat.BINARY) -> list[str]:
        """The formats in which messages leave for B5."""
        for _ in range(times):
            self.sent += 1
            payload = encode(parse_text(NEWS), wire_format)
            message = Message("B1", "s1", self.sent, wire_format.value, 1, payload)
            self.brokers["B1"].send("B1", message)
        return [frame.format for frame in self.brokers["B5"].take(Message)]

    @property
    def choice(self) -> ChosenFormat:
        return self.core.statistics().data.formats["B5"]


def test_a_slow_link_takes_what_is_small() -> None:
    setting = Ticking("bandwidth_kbps = 64", step=20e-6)
    assert setting.send(MEASURED_LEAST - 1) == ["binary"] * (MEASURED_LEAST - 1)
    smallest = min(setting.choice.estimates, key=lambda row: row.bytes).format
    assert set(setting.send(3)) == {smallest} and smallest.endswith("+zstd")
    choice = setting.choice
    assert (choice.bytes_per_second, choice.bandwidth) == (8000, "given")
    assert choice.estimates[0].format == smallest
    assert len(choice.estimates) == 6
    assert "us a message" in choice.why


def test_a_fast_link_takes_what_is_quick_and_what_came_costs_no_encoding() -> None:
    setting = Ticking("bandwidth_mbps = 10000", step=100e-6)
    assert set(setting.send(10)) == {"binary"}
    (binary,) = (row for row in setting.choice.estimates if row.format == "binary")
    assert (binary.encode_us, binary.decode_us) == (0.0, 100.0)
    (packed,) = (row for row in setting.choice.estimates if row.format == "binary+zstd")
    assert (packed.encode_us, packed.decode_us) == (200.0, 100.0)


def test_a_message_that_came_in_the_chosen_format_is_passed_on_as_it_came() -> None:
    setting = Ticking("bandwidth_mbps = 10000", step=100e-6)
    setting.send(MEASURED_LEAST + 1, WireFormat.TEXT)
    assert set(setting.send(10, WireFormat.TEXT)) == {"text"}
    statistics = setting.core.statistics().data
    assert statistics.decoded == setting.sent
    assert statistics.passed_on_unchanged >= 10


def test_only_what_the_neighbour_reads_is_chosen_or_even_measured() -> None:
    setting = Ticking("bandwidth_kbps = 64")
    setting.brokers["B5"].read_only("text", "binary", "text+zstd")
    assert setting.send(MEASURED_LEAST + 2)[-1] == "text+zstd"
    assert {row.format for row in setting.choice.estimates} == {"text", "binary", "text+zstd"}


def test_a_source_without_a_schema_has_no_words_to_leave_out() -> None:
    setting = Ticking("bandwidth_kbps = 64", schema=b"")
    assert set(setting.send(8)[MEASURED_LEAST:]) <= {"binary+zstd", "text+zstd"}


def test_without_a_given_bandwidth_it_is_measured_or_assumed() -> None:
    setting = Ticking("latency_ms = 1")
    setting.send(2)
    assert setting.choice.bandwidth == "assumed"
    assert setting.choice.bytes_per_second == 125_000_000


def test_the_level_of_the_link_is_used() -> None:
    sizes = {}
    for level in (1, 19):
        setting = Ticking(f"bandwidth_kbps = 1, level = {level}", schema=b"")
        setting.send(8)
        sizes[level] = {row.format: row.bytes for row in setting.choice.estimates}
    assert sizes[1]["text"] == sizes[19]["text"]
    assert sizes[1]["text+zstd"] != sizes[19]["text+zstd"]


def test_a_neighbour_that_gives_a_message_back_is_sent_what_it_reads() -> None:
    setting = Ticking("bandwidth_kbps = 64")
    setting.send(MEASURED_LEAST)
    setting.send(1)
    back = Undecoded("B1", "s1", 1, "binary", 2, encode(parse_text(NEWS), WireFormat.BINARY))
    setting.brokers["B5"].send("B1", back)
    setting.brokers["B5"].take(Message)
    assert set(setting.send(3)) <= {"binary+zstd", "text+zstd"}


def test_of_a_neighbour_that_has_left_nothing_is_said() -> None:
    setting = Ticking("latency_ms = 1")
    setting.send(2)
    left = next_shape(first_shape(setting.topology), without_broker(setting.topology, "B5"))
    shapes = setting.core.control.shapes
    shapes.add(left.announced(is_packed=False))
    shapes.agree(1)
    shapes.settle()
    assert shapes.neighbours() == {"B1"}
    assert setting.core.statistics().data.formats == {}
