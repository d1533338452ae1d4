"""Topology files: what they mean, and the one message for everything that can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from formats.codec import WireFormat
from formats.limits import MessageLimits
from overlay.archive import ArchiveOptions
from overlay.errors import TopologyError
from overlay.limits import TrainingLimits
from overlay.link.limits import LinkLimits
from overlay.planning import PlanningOptions
from overlay.state_directory import state_directory
from overlay.topology import (
    FILE_BYTES_MAX,
    Address,
    Limits,
    Link,
    Place,
    Topology,
    Transformation,
    load_topology,
    parse_topology,
    to_toml,
)
from tests.examples import examples
from tests.overlay.topologies import EXAMPLES, PAIR, pair_with, topologies


def refusal(text: str) -> str:
    with pytest.raises(TopologyError) as caught:
        parse_topology(text, "net.toml")
    return str(caught.value)


def refusal_of_pair(old: str, new: str) -> str:
    with pytest.raises(TopologyError) as caught:
        pair_with(old, new)
    assert caught.value.file == "pair.toml"
    return str(caught.value)


# --- what a file means ---------------------------------------------------------------------


def test_defaults() -> None:
    topology = parse_topology(PAIR, "pair.toml")
    assert topology.name == "pair"
    assert topology.data_directory == state_directory() / "pair"
    assert [node.id for node in topology.registration] == ["R1"]
    assert topology.broker_ids == ("B1", "B2")
    first = topology.broker("B1")
    assert (first.listen, first.place, first.capacity, first.label) == (
        Address("127.0.0.1", 7001),
        None,
        100_000,
        "",
    )
    assert topology.links == (Link(("B1", "B2"), 1.0, None, WireFormat.BINARY),)
    assert topology.limits == Limits(MessageLimits(), LinkLimits())
    assert topology.limits.link_backlog_bytes_max == 256 * 1024 * 1024
    assert topology.limits.delivery_backlog_bytes_max == 64 * 1024 * 1024


def test_defaults_of_the_file_hold_unless_something_else_is_said() -> None:
    topology = parse_topology(
        """
        name = "three"
        data_directory = "/srv/onyx"
        [defaults]
        capacity = 7
        latency_ms = 4
        bandwidth_mbps = 2
        format = "text"
        [registration]
        id = "R1"
        listen = "[::1]:7000"
        [[broker]]
        id = "B1"
        listen = "onyx.example.org:0"
        label = "Zürich"
        place = [47, 8.5]
        [[broker]]
        id = "B2"
        listen = "127.0.0.1:0"
        capacity = 0
        [[broker]]
        id = "B3"
        listen = "127.0.0.1:0"
        [[link]]
        ends = ["B1", "B2"]
        [[link]]
        ends = ["B3", "B2"]
        latency_ms = 0.25
        bandwidth_kbps = 64
        format = "binary+zstd"
        level = 7
        transformation = "projection"
        [limits]
        profiles_max = 10
        [limits.message]
        depth_max = 3
        [limits.link]
        window_frames = 1
        [archive]
        directory = "news"
        share = 0.5
        [planning]
        auto = false
        master = "local[2]"
        drift = 0.5
        [limits.training]
        dictionary_bytes_max = 0
        """,
        "three.toml",
    )
    assert topology.data_directory == Path("/srv/onyx")
    assert topology.registration[0].listen == Address("::1", 7000)
    assert str(topology.registration[0].listen) == "[::1]:7000"
    assert topology.broker("B1").listen == Address("onyx.example.org", 0)
    assert topology.broker("B1").place == Place(47.0, 8.5)
    assert topology.broker("B1").label == "Zürich"
    assert [broker.capacity for broker in topology.brokers] == [7, 0, 7]
    assert topology.link("B1", "B2") == Link(("B1", "B2"), 4.0, 2_000.0, WireFormat.TEXT)
    assert topology.link("B2", "B3") == Link(
        *(("B3", "B2"), 0.25, 64.0, WireFormat.BINARY_ZSTD, 7),
        transformation=Transformation.PROJECTION,
    )
    assert topology.transforms
    assert topology.limits == Limits(
        MessageLimits(depth_max=3),
        LinkLimits(window_frames=1),
        TrainingLimits(dictionary_bytes_max=0),
        profiles_max=10,
    )
    assert topology.archive == ArchiveOptions(Path("news"), 0.5)
    assert topology.planning == PlanningOptions(auto=False, master="local[2]", drift=0.5)
    assert parse_topology(to_toml(topology), "again.toml") == topology


def test_neighbours_links_and_addresses() -> None:
    topology = load_topology(EXAMPLES / "figure4.toml")
    assert topology.neighbours("B1") == ("B2", "B3", "B4")
    assert topology.neighbours("B4") == ("B1", "B5", "B6")
    assert topology.link("B4", "B1") is topology.link("B1", "B4")
    assert topology.address("B6") == ("127.0.0.1", 7206)
    assert topology.address("R1") == ("127.0.0.1", 7200)
    for unknown in (topology.neighbours, topology.broker, topology.address):
        with pytest.raises(KeyError):
            unknown("B7")
    with pytest.raises(KeyError):
        topology.link("B2", "B3")


def test_the_door_of_links_is_another_than_that_of_clients() -> None:
    topology = parse_topology(
        PAIR.replace(LISTEN1, f'{LISTEN1}\nlinks = "10.0.0.1:4711"').replace(":7002", ":65000"),
        "pair.toml",
    )
    assert topology.broker("B1").links == Address("10.0.0.1", 4711)
    assert topology.broker("B2").links == Address("127.0.0.1", 15_000)
    assert topology.registration[0].links == Address("127.0.0.1", 17_000)
    anywhere = topology.with_addresses({"B1": ("127.0.0.1", 0)})
    assert anywhere.broker("B1").links == Address("127.0.0.1", 0)
    known = topology.with_addresses({"B1": ("h", 1)}, {"B1": ("h", 2)})
    assert (known.broker("B1").listen, known.broker("B1").links) == (("h", 1), ("h", 2))


def test_ports_follow_that_of_the_registration_node() -> None:
    named = f'{LISTEN1}\nlinks = "10.0.0.1:4711"'
    text = PAIR.replace(LISTEN1, named) + '[gateway]\nlisten = "h:7300"\n'
    topology = parse_topology(text, "pair.toml")
    moved = topology.at_port(25_000)
    assert moved.registration[0].listen == Address("127.0.0.1", 25_000)
    assert moved.registration[0].links == Address("127.0.0.1", 5_000)
    assert moved.broker("B1").listen.port == 25_001
    assert moved.broker("B1").links == Address("10.0.0.1", 22_711)
    assert moved.gateway is not None and moved.gateway.listen == Address("h", 25_300)
    assert moved.at_port(7000) == topology
    anywhere = topology.at_port(0)
    nodes = (*anywhere.registration, *anywhere.brokers)
    assert {port for node in nodes for port in (node.listen.port, node.links.port)} == {0}
    with pytest.raises(TopologyError, match=r'B1.listen: "127.0.0.1:7001" would get port 65536'):
        topology.at_port(65_535)
    with pytest.raises(TopologyError, match="any free port, which no other port can follow"):
        anywhere.at_port(7000)


def test_with_addresses_changes_where_nodes_listen_and_nothing_else() -> None:
    before = parse_topology(PAIR, "pair.toml")
    after = before.with_addresses({"B2": ("127.0.0.1", 4242), "R1": ("::1", 4243)})
    assert after.address("B1") == before.address("B1")
    assert after.address("B2") == Address("127.0.0.1", 4242)
    assert after.address("R1") == Address("::1", 4243)
    assert before.address("B2") == Address("127.0.0.1", 7002)
    back = after.with_addresses({"B2": before.address("B2"), "R1": before.address("R1")})
    assert back == before
    assert after.link("B1", "B2") == before.link("B1", "B2")
    with pytest.raises(KeyError):
        before.with_addresses({"B3": ("127.0.0.1", 1)})


@examples(150)
@given(topologies())
def test_what_is_written_is_read_back_equal(topology: Topology) -> None:
    assert parse_topology(to_toml(topology), "round-trip.toml") == topology


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    topology = load_topology(path)
    assert topology.name == path.stem
    assert parse_topology(to_toml(topology), "again.toml") == topology


def test_examples_can_run_side_by_side() -> None:
    paths = sorted(EXAMPLES.glob("*.toml"))
    assert [path.stem for path in paths] == ["chain5", "figure4", "mesh", "single", "tree15"]
    loaded = [load_topology(path) for path in paths]
    addresses = [node.listen for topology in loaded for node in topology.brokers]
    addresses += [node.listen for topology in loaded for node in topology.registration]
    assert len(set(addresses)) == len(addresses) == 5 + 6 + 8 + 1 + 15 + 5
    assert {address.host for address in addresses} == {"127.0.0.1"}
    assert all(address.port for address in addresses)


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "is not valid TOML: Invalid value (at end of document)"),
        ("x = " + "[" * 5000, "is not valid TOML: nested too deeply"),
        ("", "name: is missing, expected a string"),
        ('name = "a"', "registration: a network needs a [registration] node"),
        (
            'name = "a"\n[registration]\nid = "R1"\nlisten = "h:1"',
            "broker: a network needs at least one [[broker]]",
        ),
    ],
    ids=["syntax", "deep", "empty", "no-registration", "no-broker"],
)
def test_what_a_file_needs(text: str, message: str) -> None:
    assert refusal(text) == f"net.toml: {message}"


B1 = 'id = "B1"\n'
LISTEN1 = 'listen = "127.0.0.1:7001"'
ENDS = 'ends = ["B1", "B2"]\n'
ADDRESS = 'expected "host:port"'
NAME = "expected 1 to 64 of A-Z a-z 0-9 . _ - (not only dots)"
FORMATS = (
    "one of text, text+zstd, text+zlib, binary, binary+zstd, binary+zlib, dictionary, "
    "dictionary+zstd, dictionary+zlib, auto"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # unknown keys
        ("name =", 'titel = "x"\nname =', "titel: unknown key"),
        ("[[broker]]", "[[brokers]]", 'brokers: unknown key; did you mean "broker"?'),
        (
            LISTEN1,
            LISTEN1 + "\ncapactiy = 1",
            'broker[0].capactiy: unknown key; did you mean "capacity"?',
        ),
        (ENDS, ENDS + "latency = 1\n", 'link[0].latency: unknown key; did you mean "latency_ms"?'),
        ("[registration]\n", "[registration]\nplace = [1, 2]\n", "registration.place: unknown key"),
        (ENDS, ENDS + "[defaults]\nplace = 1\n", "defaults.place: unknown key"),
        (ENDS, ENDS + "[limits]\nframes = 1\n", "limits.frames: unknown key"),
        (
            ENDS,
            ENDS + "[limits.message]\ndepth = 1\n",
            'limits.message.depth: unknown key; did you mean "depth_max"?',
        ),
        (
            ENDS,
            ENDS + "[limits.link]\nwindow_frame = 1\n",
            'limits.link.window_frame: unknown key; did you mean "window_frames"?',
        ),
        ("name =", '"a\\nb" = 1\nname =', '"a\N{REPLACEMENT CHARACTER}b": unknown key'),
        # names
        (
            '"pair"',
            '""',
            'name: "" is no name, expected 1 to 64 of A-Z a-z 0-9 . _ - (not only dots)',
        ),
        ('"pair"', "7", "name: must be a string, not 7"),
        (
            '"pair"',
            '"a/b"',
            f'name: "a/b" is no name, {NAME}',
        ),
        (
            '"pair"',
            '".."',
            f'name: ".." is no name, {NAME}',
        ),
        (
            B1,
            'id = "B 1"\n',
            f'broker[0].id: "B 1" is no name, {NAME}',
        ),
        (
            B1,
            f'id = "{"x" * 65}"\n',
            f'broker[0].id: "{"x" * 65}" is no name, {NAME}',
        ),
        (B1, "", "broker[0].id: is missing, expected a string"),
        (B1, 'id = "B2"\n', 'broker[1].id: "B2" is already the id of broker[0]'),
        (B1, 'id = "R1"\n', 'broker[0].id: "R1" is already the id of registration'),
        (
            "name =",
            'data_directory = "a\\u0000b"\nname =',
            "data_directory: must not contain a NUL character",
        ),
        # addresses
        (
            LISTEN1,
            'listen = "127.0.0.1"',
            f'broker[0].listen: "127.0.0.1" is no address, {ADDRESS}',
        ),
        (LISTEN1, "listen = 7001", "broker[0].listen: must be a string, not 7001"),
        (LISTEN1, 'listen = ":7001"', f'broker[0].listen: ":7001" is no address, {ADDRESS}'),
        (LISTEN1, 'listen = "a b:1"', f'broker[0].listen: "a b:1" is no address, {ADDRESS}'),
        (LISTEN1, 'listen = "h:١"', f'broker[0].listen: "h:١" is no address, {ADDRESS}'),
        (
            LISTEN1,
            'listen = "::1:7001"',
            'broker[0].listen: "::1:7001": write an IPv6 host in brackets, [::1]:7000',
        ),
        (
            LISTEN1,
            'listen = "h:65536"',
            'broker[0].listen: "h:65536": the port is out of range, expected 0 to 65535',
        ),
        (
            LISTEN1,
            'listen = "127.0.0.1:7002"',
            'broker[1].listen: "127.0.0.1:7002" is already the address of broker[0]',
        ),
        (
            LISTEN1,
            f'{LISTEN1}\nlinks = "127.0.0.1:7002"',
            'broker[0].links: "127.0.0.1:7002" is already the address of broker[1]',
        ),
        (LISTEN1, f'{LISTEN1}\nlinks = "x"', f'broker[0].links: "x" is no address, {ADDRESS}'),
        (
            LISTEN1,
            'listen = "127.0.0.1:7000"',
            'broker[0].listen: "127.0.0.1:7000" is already the address of registration',
        ),
        # what else a broker has
        (
            LISTEN1,
            LISTEN1 + "\ncapacity = -1",
            "broker[0].capacity: must be an integer from 0 to 1000000000, not -1",
        ),
        (
            LISTEN1,
            LISTEN1 + f"\ncapacity = 0x{'f' * 5_001}",
            (
                "broker[0].capacity: must be an integer from 0 to 1000000000, not an integer of "
                "very many digits"
            ),
        ),
        (
            LISTEN1,
            LISTEN1 + "\ncapacity = 1.5",
            "broker[0].capacity: must be an integer, not 1.5",
        ),
        (
            LISTEN1,
            LISTEN1 + "\ncapacity = true",
            "broker[0].capacity: must be an integer, not True",
        ),
        (
            LISTEN1,
            LISTEN1 + '\nlabel = "a\\tb"',
            "broker[0].label: must be at most 64 printable characters",
        ),
        (
            LISTEN1,
            LISTEN1 + "\nplace = 1979-05-27",
            "broker[0].place: must be [latitude, longitude] in degrees, not 1979-05-27",
        ),
        (
            LISTEN1,
            LISTEN1 + "\nplace = [1]",
            "broker[0].place: has 1 values, expected [latitude, longitude] in degrees",
        ),
        (
            LISTEN1,
            LISTEN1 + '\nplace = [1, "2"]',
            "broker[0].place[1]: must be a number, not '2'",
        ),
        (
            LISTEN1,
            LISTEN1 + "\nplace = [91, 0]",
            "broker[0].place[0]: must be a number from -90 to 90, not 91",
        ),
        (
            LISTEN1,
            LISTEN1 + "\nplace = [0, nan]",
            "broker[0].place[1]: must be a number from -180 to 180, not nan",
        ),
        # links
        (ENDS, "", "link[0].ends: is missing, expected the ids of two brokers"),
        (ENDS, 'ends = "B1"\n', "link[0].ends: must be the ids of two brokers, not 'B1'"),
        (ENDS, 'ends = ["B1"]\n', "link[0].ends: has 1 values, expected the ids of two brokers"),
        (ENDS, 'ends = ["B1", 2]\n', "link[0].ends[1]: must be a string, not 2"),
        (
            ENDS,
            'ends = ["B1", "b2"]\n',
            'link[0].ends: "b2" is no broker of this network; did you mean "B2"?',
        ),
        (ENDS, 'ends = ["B1", "R1x"]\n', 'link[0].ends: "R1x" is no broker of this network'),
        (ENDS, 'ends = ["B1", "B1"]\n', 'link[0].ends: links "B1" to itself'),
        (
            ENDS,
            ENDS + '[[link]]\nends = ["B2", "B1"]\n',
            'link[1].ends: "B2" and "B1" are already joined by link[0]',
        ),
        (
            ENDS,
            ENDS + "latency_ms = -1\n",
            "link[0].latency_ms: must be a number from 0 to 60000, not -1",
        ),
        (
            ENDS,
            ENDS + "latency_ms = inf\n",
            "link[0].latency_ms: must be a number from 0 to 60000, not inf",
        ),
        (ENDS, ENDS + "latency_ms = true\n", "link[0].latency_ms: must be a number, not True"),
        (
            ENDS,
            ENDS + "bandwidth_kbps = 0.5\n",
            "link[0].bandwidth_kbps: must be a number from 1 to 1000000000, not 0.5",
        ),
        (
            ENDS,
            ENDS + "bandwidth_kbps = 1\nbandwidth_mbps = 1\n",
            "link[0].bandwidth_mbps: bandwidth_kbps is given as well, expected one of both",
        ),
        (
            ENDS,
            ENDS + 'format = "binry"\n',
            f"link[0].format: must be {FORMATS}, not 'binry'; did you mean \"binary\"?",
        ),
        (
            ENDS,
            ENDS + '[[broker]]\nid = "B3"\nlisten = "h:0"\n',
            "link: the network is not connected: no way from B1 to B3",
        ),
        ("[[link]]\n" + ENDS, "", "link: the network is not connected: no way from B1 to B2"),
        # planning
        (
            ENDS,
            ENDS + '[planning]\nauto = "yes"\n',
            "planning.auto: must be a boolean, not 'yes'",
        ),
        (
            ENDS,
            ENDS + "[planning]\nmoves_per_second = 0\n",
            "planning.moves_per_second: must be a number from 0.01 to 10000, not 0",
        ),
        # archive
        (
            ENDS,
            ENDS + "[archive]\nshare = 2\n",
            "archive.share: must be a number from 0 to 1, not 2",
        ),
        (
            ENDS,
            ENDS + '[archive]\nat_bytes_max = "wait"\n',
            "archive.at_bytes_max: must be one of drop, stop, not 'wait'",
        ),
        (ENDS, ENDS + '[archive]\ndirectory = ""\n', "archive.directory: must not be empty"),
        # limits
        (
            ENDS,
            ENDS + "[limits.link]\nhello_bytes_max = 1\n",
            "limits.link.hello_bytes_max: must be an integer from 65536 to 2147483647, not 1",
        ),
        (
            ENDS,
            ENDS + "[limits.link]\nkeepalive_seconds = 0\n",
            "limits.link.keepalive_seconds: must be a number from 0.1 to 3600, not 0",
        ),
        (
            ENDS,
            ENDS + "[limits.link]\nwindow_frames = 1025\n",
            "limits.link.window_frames: must be an integer from 1 to 1024, not 1025",
        ),
        (
            ENDS,
            ENDS + "[limits.link]\nframe_bytes_max = 1000000\n",
            "limits.link.frame_bytes_max: must be at least limits.message.bytes_max, 4194304",
        ),
        (
            ENDS,
            ENDS
            + "[limits]\nlink = {frame_bytes_max = 65536}\nmessage = {bytes_max = 65536}\n"
            + "training = {dictionary_bytes_max = 65536}\n",
            (
                "limits.training.dictionary_bytes_max: must leave 1024 bytes of "
                "limits.link.frame_bytes_max"
            ),
        ),
        (
            ENDS,
            ENDS + "[limits.training]\nsamples = 3\n",
            "limits.training.samples: must be an integer from 16 to 10000, not 3",
        ),
        (
            ENDS,
            ENDS + "[limits]\nprofiles_max = 0\n",
            "limits.profiles_max: must be an integer from 1 to 2147483647, not 0",
        ),
        (
            ENDS,
            ENDS + "[limits]\nmessage = 1\n",
            "limits.message: must be a table, not 1",
        ),
    ],
)
def test_refusals(old: str, new: str, message: str) -> None:
    assert refusal_of_pair(old, new) == f"pair.toml: {message}"


def test_a_table_is_no_array_of_tables() -> None:
    message = "net.toml: link: must be an array of tables [[link]], not a table"
    assert refusal(PAIR.replace("[[link]]", "[link]")) == message
    assert refusal(PAIR.replace("[[link]]\n" + ENDS, "").replace("name", "link = [1]\nname")) == (
        "net.toml: link[0]: must be a table, not 1"
    )


def test_any_number_of_nodes_may_have_port_0() -> None:
    text = PAIR.replace(":7001", ":0").replace(":7002", ":0").replace(":7000", ":0")
    topology = parse_topology(text, "pair.toml")
    assert {topology.address(node) for node in ("R1", "B1", "B2")} == {("127.0.0.1", 0)}


def test_one_registration_node_in_either_notation() -> None:
    assert pair_with("[registration]", "[[registration]]") == pair_with("name", "name")
    second = '[[registration]]\nid = "R2"\nlisten = "h:0"\n[[broker]]'
    text = PAIR.replace("[registration]", "[[registration]]").replace("[[broker]]", second, 1)
    assert refusal(text) == "net.toml: registration: has 2 values, expected at most 1"
    text = PAIR.replace('[registration]\nid = "R1"\nlisten = "127.0.0.1:7000"', "registration = []")
    assert refusal(text) == "net.toml: registration: a network needs a [registration] node"
    text = PAIR.replace("[registration]", "[[registration]]").replace('id = "R1"', 'id = "R 1"')
    assert refusal(text).startswith('net.toml: registration[0].id: "R 1" is no name')


def test_many_lost_brokers_are_counted() -> None:
    extra = "".join(f'[[broker]]\nid = "X{i}"\nlisten = "h:0"\n' for i in range(7))
    assert refusal(PAIR + extra) == (
        "net.toml: link: the network is not connected: "
        "no way from B1 to X0, X1, X2, X3, X4 and 2 more"
    )


def test_too_many_brokers() -> None:
    text = PAIR + "".join(f'[[broker]]\nid = "X{i}"\nlisten = "h:0"\n' for i in range(999))
    assert refusal(text) == "net.toml: broker: has 1001 values, expected at most 1000"


# --- files ---------------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def message(path: Path) -> str:
        with pytest.raises(TopologyError) as caught:
            load_topology(path)
        return str(caught.value)

    path = tmp_path / "net.toml"
    assert message(path) == f"{path}: cannot be read: No such file or directory"
    assert message(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    path.write_bytes(b'name = "\xff"')
    assert message(path) == f"{path}: is not UTF-8 (byte 8)"
    path.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    assert message(path) == f"{path}: is longer than {FILE_BYTES_MAX} bytes"
    path.write_text(PAIR, encoding="utf-8")
    assert load_topology(path) == parse_topology(PAIR, "pair.toml")


# --- stores and standbys -------------------------------------------------------------------

STORES = '[stores]\nurl = "postgresql://db/onyx"\n'
STANDBY = f'{LISTEN1}\nstandby = "10.0.0.2:7001"'


def test_a_node_with_a_standby_has_two_addresses() -> None:
    topology = parse_topology(PAIR.replace(LISTEN1, STANDBY) + STORES, "pair.toml")
    first, second = topology.brokers
    assert topology.where("B1") == "127.0.0.1:7001,10.0.0.2:7001"
    assert topology.where("B2") == "127.0.0.1:7002"
    assert first.links_at == (("127.0.0.1", 17_001), ("10.0.0.2", 17_001))
    assert (first.store, second.store) == ("postgresql://db/onyx",) * 2
    assert (first.has_standby, second.has_standby) == (True, False)
    standby = first.as_standby()
    assert (standby.listen, standby.links) == (("10.0.0.2", 7001), ("10.0.0.2", 17_001))
    assert parse_topology(to_toml(topology), "again.toml") == topology
    moved = topology.with_addresses({"B1/standby": ("h", 1)}, {"B1/standby": ("h", 2)})
    assert (moved.broker("B1").standby, moved.broker("B1").standby_links) == (("h", 1), ("h", 2))
    assert moved.broker("B1").listen == first.listen


def test_a_node_may_keep_its_file() -> None:
    text = PAIR.replace(LISTEN1, f'{LISTEN1}\nstore = "sqlite"') + STORES
    topology = parse_topology(text, "pair.toml")
    assert [broker.store for broker in topology.brokers] == ["sqlite", "postgresql://db/onyx"]
    assert parse_topology(to_toml(topology), "again.toml") == topology


def test_a_network_whose_server_is_started_with_it() -> None:
    topology = parse_topology(PAIR + '[stores]\nurl = "trial"', "pair.toml")
    assert topology.has_trial_store
    told = topology.with_trial_store("postgresql:///x")
    assert {broker.store for broker in told.brokers} == {"postgresql:///x"} == {told.stores.url}
    assert not told.has_trial_store


@pytest.mark.parametrize(
    ("of_broker", "stores", "reason"),
    [
        (STANDBY, "", "broker[0].standby: has nothing to go on with: store is a file"),
        (f'{LISTEN1}\nstandby_links = "h:1"', STORES, "there is no standby, expected standby"),
        (STANDBY.replace("10.0.0.2:7001", "127.0.0.1:7002"), STORES, "already the address of"),
        (f'{LISTEN1}\nstore = "mysql://db"', "", 'is no store, expected "postgresql://HOST'),
        (f'{LISTEN1}\nstore = "trial"', "", '"trial" is of all nodes: say it as url in [stores]'),
        (f'{LISTEN1}\nstore = "postgresql://a:b@db"', "", "broker[0].store: has a password in it"),
        (LISTEN1, '[stores]\nurl = "postgresql://db?password=b"', "stores.url: has a password"),
        (LISTEN1, "[stores]\nlease_s = 0.5", "stores.lease_s"),
    ],
)
def test_stores_that_are_refused(of_broker: str, stores: str, reason: str) -> None:
    assert reason in refusal(PAIR.replace(LISTEN1, of_broker) + stores)


def test_settings_of_spark_are_a_table_that_may_be_empty() -> None:
    for text in ("[planning]\nauto = false\n", '[planning.conf]\n"spark.executor.memory" = "4g"\n'):
        topology = parse_topology(f"{PAIR}\n{text}", "pair.toml")
        assert parse_topology(to_toml(topology), "again.toml") == topology


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            '"spark.executor.memory" = 4',
            '."spark.executor.memory": line {}: must be a string, not 4',
        ),
        ('"spark.ui.enabled" = false', '."spark.ui.enabled": line {}: must be a string, not False'),
        (
            '"spark.executor.memory" = "lots"',
            '."spark.executor.memory": line {}: "lots" is no amount of memory, as "4g"',
        ),
        ('"spark.task.cpus" = "two"', '."spark.task.cpus": line {}: "two" is no number'),
        (
            'spark.executor.memory = "4g"',
            ".spark: must be a string, not a table; a key with dots is written in quotes",
        ),
        (
            '"executor.memory" = "4g"',
            '."executor.memory": line {}: settings of Spark begin with "spark."',
        ),
    ],
)
def test_a_wrong_setting_of_spark_is_told_by_its_name_and_line(line: str, reason: str) -> None:
    text = f'{PAIR}\n[planning.conf]\n"spark.cores.max" = "2"\n{line}\n'
    wanted = f"net.toml: planning.conf{reason.format(text.count(chr(10)))}"
    assert refusal(text) == wanted
