"""``onyx topology check | show`` and what every verb has in common: exit codes, help, errors."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
import trio

from onyx.cli import main as cli
from onyx.cli.main import main
from onyx.cli.topology import network_svg
from onyx.drawing import bandwidth_text, draw_network, draw_tree, place_text
from onyx.errors import UserError
from onyx.release import version
from overlay.errors import TopologyError
from overlay.nodes import Address, BrokerNode, Link, Place
from overlay.routing.broadcast_tree import broadcast_tree, broadcast_trees
from overlay.topology import load_topology
from tests.overlay.topologies import EXAMPLES, PAIR, network, topology_of

FIGURE_4 = str(EXAMPLES / "figure4.toml")
MESH = str(EXAMPLES / "mesh.toml")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.toml"
    path.write_text(PAIR.replace('ends = ["B1", "B2"]', 'ends = ["B1", "B3"]'), encoding="utf-8")
    return path


# --- check ---------------------------------------------------------------------------------


def test_check_sums_a_network_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "check", FIGURE_4]) == 0
    out, err = capsys.readouterr()
    assert " ".join(out.split()) == (
        f"{FIGURE_4}: the network figure4 is in order. It has 6 brokers and 5 links, with room "
        "for 600,000 profiles; sources and users register at 127.0.0.1:7200. Farthest apart are "
        "B3 Houston and B5 Seattle, 31 ms; a message crosses at most 3 links."
    )
    assert err == ""


def test_check_names_links_that_no_tree_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "check", MESH]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.endswith(
        "No broadcast tree uses NewYork - Frankfurt, London - Singapore: other ways are quicker."
    )


def test_check_of_a_single_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "check", str(EXAMPLES / "single.toml")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "It has 1 broker and 0 links, with room for 100,000 profiles" in out
    assert out.endswith("register at 127.0.0.1:7100.")


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "check", "--json", MESH]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "file": MESH,
        "name": "mesh",
        "brokers": 8,
        "links": 11,
        "registration": ["127.0.0.1:7500"],
        "capacity": 800_000,
        "diameter_ms": 112.5,
        "farthest": ["Singapore", "SaoPaulo"],
        "links_crossed_max": 4,
        "unused_links": [["NewYork", "Frankfurt"], ["London", "Singapore"]],
    }


def test_check_refuses_with_file_key_and_reason(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = '"B3" is no broker of this network'
    assert main(["topology", "check", str(broken)]) == 78
    assert capsys.readouterr() == ("", f"onyx: {broken}: link[0].ends: {reason}\n")
    assert main(["topology", "check", str(broken), "--json"]) == 78
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "ok": False,
        "file": str(broken),
        "key": "link[0].ends",
        "reason": reason,
    }


# --- show ----------------------------------------------------------------------------------


def test_show_draws_the_network_and_a_tree_of_every_broker(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["topology", "show", FIGURE_4]) == 0
    out = capsys.readouterr().out
    topology = load_topology(Path(FIGURE_4))
    assert out.startswith(f"network figure4\n\n{draw_network(topology)}\n")
    for tree in broadcast_trees(topology).values():
        assert draw_tree(topology, tree) in out
    assert out.count("broadcast tree of ") == 6


def test_show_one_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", FIGURE_4, "--root", "B1"]) == 0
    assert capsys.readouterr().out == (
        """\
network figure4

registration  R1  127.0.0.1:7200

broker  address                        place                capacity
B1      127.0.0.1:7201  Chicago        41.88° N   87.63° W   100,000
B2      127.0.0.1:7202  New York       40.71° N   74.01° W   100,000
B3      127.0.0.1:7203  Houston        29.76° N   95.37° W   100,000
B4      127.0.0.1:7204  San Francisco  37.77° N  122.42° W   100,000
B5      127.0.0.1:7205  Seattle        47.61° N  122.33° W   100,000
B6      127.0.0.1:7206  Los Angeles    34.05° N  118.24° W   100,000

link      latency   bandwidth  format
B1 ── B2   6.5 ms   10 Gbit/s  binary
B1 ── B3   8.5 ms  100 Mbit/s  text
B1 ── B4  16.5 ms    1 Gbit/s  binary+zstd
B4 ── B5     6 ms    1 Gbit/s  binary
B4 ── B6     3 ms    1 Gbit/s  binary

broadcast tree of B1       link  from B1
B1 Chicago
├── B2 New York          6.5 ms   6.5 ms
├── B3 Houston           8.5 ms   8.5 ms
└── B4 San Francisco    16.5 ms  16.5 ms
    ├── B5 Seattle         6 ms  22.5 ms
    └── B6 Los Angeles     3 ms  19.5 ms
"""
    )


def test_show_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", FIGURE_4, "--root", "B4", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown) == {
        "name",
        "data_directory",
        "registration",
        "brokers",
        "links",
        "limits",
        "trees",
    }
    assert shown["registration"] == [
        {"id": "R1", "listen": "127.0.0.1:7200", "links": "127.0.0.1:17200"}
    ]
    assert shown["brokers"][3] == {
        "id": "B4",
        "label": "San Francisco",
        "listen": "127.0.0.1:7204",
        "links": "127.0.0.1:17204",
        "place": [37.77, -122.42],
        "capacity": 100_000,
        "neighbours": ["B1", "B5", "B6"],
    }
    assert shown["links"][1] == {
        "ends": ["B1", "B3"],
        "latency_ms": 8.5,
        "bandwidth_kbps": 100_000,
        "format": "text",
        "level": None,
        "bandwidth_given": True,
        "transformation": "off",
    }
    assert shown["limits"]["message"]["depth_max"] == 256
    assert list(shown["trees"]) == ["B4"]
    assert shown["trees"]["B4"] == {
        "parent": {"B1": "B4", "B2": "B1", "B3": "B1", "B4": None, "B5": "B4", "B6": "B4"},
        "children": {
            "B1": ["B2", "B3"],
            "B2": [],
            "B3": [],
            "B4": ["B1", "B5", "B6"],
            "B5": [],
            "B6": [],
        },
        "latency_ms": {"B1": 16.5, "B2": 23, "B3": 25, "B4": 0, "B5": 6, "B6": 3},
    }
    assert main(["topology", "show", FIGURE_4, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["trees"]) == [
        "B1",
        "B2",
        "B3",
        "B4",
        "B5",
        "B6",
    ]


def test_show_refuses_an_unknown_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", MESH, "--root", "tokio"]) == 2
    assert capsys.readouterr() == (
        "",
        f'onyx: --root "tokio" is no broker of {MESH}; did you mean "Tokyo"?\n',
    )


def test_show_refuses_a_broken_file(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", str(broken), "--svg", str(broken.parent / "x.svg")]) == 78
    assert capsys.readouterr().err.startswith(f"onyx: {broken}: link[0].ends: ")
    assert not (broken.parent / "x.svg").exists()


def test_a_deep_tree_is_drawn() -> None:
    topology = network(*((f"B{i:04}", f"B{i + 1:04}", 1) for i in range(999)))
    lines = draw_tree(topology, broadcast_tree(topology, "B0000")).splitlines()
    assert len(lines) == 1001
    assert lines[-1].split() == ["└──", "B0999", "1", "ms", "999", "ms"]


@pytest.mark.parametrize(
    ("kbps", "text"),
    [
        (1, "1 kbit/s"),
        (56.5, "56.5 kbit/s"),
        (2_000, "2 Mbit/s"),
        (2_500_000, "2.5 Gbit/s"),
        (1e9, "1000 Gbit/s"),
    ],
)
def test_bandwidth(kbps: float, text: str) -> None:
    assert bandwidth_text(kbps) == text


def test_place() -> None:
    assert place_text(Place(-23.55, 8)) == "23.55° S    8.00° E"
    assert place_text(None) == ""


# --- pictures ------------------------------------------------------------------------------


def test_show_writes_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figure4.svg"
    assert main(["topology", "show", FIGURE_4, "--root", "B1", "--svg", str(path)]) == 0
    assert capsys.readouterr().err == f"onyx: wrote {path}\n"
    topology = load_topology(Path(FIGURE_4))
    expected = network_svg(topology, broadcast_tree(topology, "B1"))
    assert path.read_text(encoding="utf-8") == expected


def test_the_picture_in_the_documentation_is_current() -> None:
    topology = load_topology(Path(FIGURE_4))
    picture = EXAMPLES.parent / "docs" / "figure4.svg"
    assert picture.read_text(encoding="utf-8") == network_svg(
        topology, broadcast_tree(topology, "B1")
    )


def test_a_picture_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nowhere" / "x.svg"
    assert main(["topology", "show", FIGURE_4, "--svg", str(path)]) == 73
    assert capsys.readouterr().err == (
        f"onyx: {path} cannot be written: No such file or directory\n"
    )


Box = tuple[float, float, float, float]  # left, top, right, bottom


def cards(drawing: ElementTree.Element) -> list[Box]:
    boxes = []
    for card in drawing.findall(f"{SVG}g"):
        rect = card.find(f"{SVG}rect")
        assert rect is not None
        x, y, width, height = (float(rect.get(key, 0)) for key in ("x", "y", "width", "height"))
        boxes.append((x, y, x + width, y + height))
    return boxes


def assert_apart(boxes: list[Box]) -> None:
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_pictures_show_every_broker_apart_and_every_link(path: Path, rooted: bool) -> None:
    topology = load_topology(path)
    root = topology.broker_ids[0]
    picture = ElementTree.fromstring(
        network_svg(topology, broadcast_tree(topology, root) if rooted else None)
    )
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    drawing = picture.find(f"{SVG}g")
    assert drawing is not None
    left, top = map(float, drawing.get("transform", "")[len("translate(") : -1].split())
    boxes = [(x0 + left, y0 + top, x1 + left, y1 + top) for x0, y0, x1, y1 in cards(drawing)]
    ids = [
        text.text for text in drawing.iter(f"{SVG}text") if "id" in text.get("class", "").split()
    ]
    assert ids == list(topology.broker_ids)
    assert all(x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height for x0, y0, x1, y1 in boxes)
    assert_apart(boxes)
    paths = [path.get("class") for path in drawing.iter(f"{SVG}path")]
    tree_links = len(topology.brokers) - 1 if rooted else 0
    assert paths.count("head") == paths.count("link tree") == tree_links
    assert paths.count("link") == len(topology.links) - tree_links


def test_pictures_escape_text_and_cut_it_to_the_card() -> None:
    brokers = (
        BrokerNode("A" * 64, Address("h", 1), label='<&">'),
        BrokerNode("B", Address("h", 2), capacity=0),
    )
    topology = topology_of(brokers, (Link(("A" * 64, "B")),))
    picture = ElementTree.fromstring(network_svg(topology))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert '<&">' in texts
    assert "A" * 19 + "…" in texts
    titles = [title.text for title in picture.iter(f"{SVG}title")]
    assert f'{"A" * 64} <&">, h:1, room for 100,000 profiles' in titles
    assert "B, h:2, routes only" in titles


def test_crowded_brokers_are_drawn_apart() -> None:
    """In one place and all joined to each other: as crowded as it can be."""
    brokers = tuple(BrokerNode(f"B{i}", Address("h", i), place=Place(0, 0)) for i in range(12))
    links = tuple(Link((a.id, b.id)) for a, b in itertools.combinations(brokers, 2))
    picture = ElementTree.fromstring(network_svg(topology_of(brokers, links)))
    drawing = picture.find(f"{SVG}g")
    assert drawing is not None
    boxes = cards(drawing)
    assert len(boxes) == 12
    assert_apart(boxes)


# --- every verb ----------------------------------------------------------------------------


def test_without_a_verb_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "onyx topology show topologies/figure4.toml" in err


@pytest.mark.parametrize(
    ("arguments", "code", "stream", "text"),
    [
        (["--version"], 0, "out", "onyx 0.1.0"),
        (["--help"], 0, "out", "examples:\n"),
        (["topology", "check", "--help"], 0, "out", "onyx topology check --json my-network.toml"),
        (["topology", "show", "--help"], 0, "out", "--svg OUT.svg"),
        (["topologie"], 2, "err", "invalid choice: 'topologie'"),
        (["topology"], 2, "err", "the following arguments are required: VERB"),
        (["topology", "check"], 2, "err", "the following arguments are required: FILE"),
        (["topology", "check", "x.toml", "--root", "B1"], 2, "err", "unrecognized arguments"),
    ],
)
def test_usage(
    arguments: list[str], code: int, stream: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == code
    assert text in getattr(capsys.readouterr(), stream)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make ``onyx fail`` a verb that raises ``error``."""

    def run(arguments: argparse.Namespace) -> int:
        raise error

    verb = types.SimpleNamespace(
        add_parser=lambda subparsers: subparsers.add_parser("fail").set_defaults(run=run)
    )
    monkeypatch.setattr(cli, "VERBS", {"fail": "fail at once"})
    monkeypatch.setattr(cli, "load_verb", lambda _name: verb)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("nobody answers", 69), 69, "onyx: nobody answers\n"),
        (TopologyError("a.toml", "name", "is bad"), 78, "onyx: a.toml: name: is bad\n"),
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("nursery", [KeyboardInterrupt()]), 130, ""),
        (
            BaseExceptionGroup(
                "outer", [KeyboardInterrupt(), ExceptionGroup("inner", [UserError("no", 65)])]
            ),
            65,
            "onyx: no\n",
        ),
    ],
)
def test_expected_errors_are_messages_without_a_traceback(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail_with(monkeypatch, error)
    assert main(["fail"]) == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    "error", [ValueError("a fault"), ExceptionGroup("g", [UserError("no"), ValueError("a fault")])]
)
def test_faults_of_the_program_are_not_hidden(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, error)
    with pytest.raises(type(error)) as caught:
        main(["fail"])
    assert caught.value is error


def test_an_error_out_of_a_trio_nursery(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refuse() -> None:
        raise UserError("port taken", 78)

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            nursery.start_soon(trio.sleep_forever)

    def run(arguments: argparse.Namespace) -> int:
        trio.run(serve)
        return 0

    verb = types.SimpleNamespace(
        add_parser=lambda subparsers: subparsers.add_parser("serve").set_defaults(run=run)
    )
    monkeypatch.setattr(cli, "VERBS", {"serve": "serve for ever"})
    monkeypatch.setattr(cli, "load_verb", lambda _name: verb)
    assert main(["serve"]) == 78
    assert capsys.readouterr().err == "onyx: port taken\n"


# --- as a process --------------------------------------------------------------------------


def run_module(*arguments: str, stdout: int, encoding: str = "utf-8") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.Popen(
        [sys.executable, "-m", "onyx", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=EXAMPLES.parent,
        env=environment,
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with run_module("topology", "show", FIGURE_4, stdout=writer) as process:
        os.close(writer)
        _, err = process.communicate()
    assert (process.returncode, err) == (141, b"")


def test_a_terminal_that_lacks_characters_gets_question_marks() -> None:
    with run_module(
        "topology", "show", FIGURE_4, stdout=subprocess.PIPE, encoding="ascii"
    ) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"??? B2 New York" in out


OWN = ("formats", "yfilter", "overlay", "registration", "onyx")
EVERY_COMMAND = [
    *("formats", "formats.kernel", "formats.lazy_names"),
    *("onyx", "onyx.cli", "onyx.cli.main", "onyx.cli.verb", "onyx.errors", "onyx.release"),
]


@pytest.mark.parametrize(
    ("option", "loaded"),
    [
        ("--version", EVERY_COMMAND),
        ("--help", [name for name in EVERY_COMMAND if name[:7] not in ("formats", "onyx.re")]),
    ],
)
def test_version_and_help_load_no_verb(option: str, loaded: list[str]) -> None:
    asked = (
        "import sys, onyx.cli.main as cli\n"
        f"try: cli.main([{option!r}])\n"
        f"finally: print(*sorted(m for m in sys.modules if m.partition('.')[0] in {OWN}))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == loaded


def test_the_release_is_what_is_installed() -> None:
    assert version() == metadata.version("onyx-dissemination")


def test_the_table_of_verbs_says_what_their_modules_say() -> None:
    lone = argparse.ArgumentParser().add_subparsers()
    for name in cli.VERBS:
        cli.load_verb(name).add_parser(lone)
    assert {one.dest: one.help for one in lone._get_subactions()} == cli.VERBS
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert {name.replace("-", "_") for name in cli.VERBS} <= modules


@pytest.mark.parametrize("verb", ["status", "subscribe", "source", "cert", "up"])
def test_a_verb_loads_no_engine_that_it_does_not_use(verb: str) -> None:
    asked = (
        f"import sys, onyx.cli.main as cli; cli.load_verb({verb!r}); "
        "print(sorted({'yfilter.matcher', 'networkx', 'elementpath'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True).stdout
    assert out == b"[]\n"
