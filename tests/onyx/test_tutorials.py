"""The tutorials, run as they stand (pages.py).

Where the reference data is, their profiles get it as well."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree

from overlay.topology import Topology, parse_topology
from tests.onyx.networks import small_topology
from tests.onyx.pages import ROOT, Command, Page, blocks
from tests.onyx.test_cli_network import Shell, shell, write

__all__ = ["shell"]

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
REAL = ROOT.parent / "shared" / "data"


@pytest.fixture
def newcomer(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """In an empty folder, and with no profile in the network: what others want is not cut away."""
    monkeypatch.chdir(tmp_path)
    if left := [profile["id"] for profile in shell.objects("profile", "list")]:
        shell.lines("profile", "remove", *left, "--wait")
    return shell


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_tutorial_is_right(file: Path, newcomer: Shell) -> None:
    page = Page(file.read_text(encoding="utf-8"))
    page.follow(newcomer)
    assert page.ids or file.stem == "index"
    lines = [line for block in blocks(page.text) for line, _ in block.commands]
    for words in (Command.read(line).words for line in lines if line.startswith("onyx ")):
        if words[1:3] in (("source", "register"), ("profile", "add")):
            assert newcomer.lines(*words[1:]) == newcomer.lines(*words[1:]), "it is added again"


def test_the_network_of_the_tutorials_is_the_one_of_the_tests(tmp_path: Path) -> None:
    text = blocks((ROOT / "docs" / "tutorials" / "index.md").read_text())[0].text

    def shape(topology: Topology) -> tuple[object, ...]:
        brokers = [(broker.id, broker.place) for broker in topology.brokers]
        return brokers, topology.links, topology.limits

    assert shape(parse_topology(text, "line.toml")) == shape(small_topology(tmp_path))


def test_what_is_not_printed_is_not_right() -> None:
    page = Page("")
    assert page.is_shown("p1-aaaaaaaa\n", "p7-k3v9q2mx\n", "")
    assert page.ids == {"p1-aaaaaaaa": "p7-k3v9q2mx"}
    assert page.is_shown("p1-aaaaaaaa at 127.0.0.1:7200\n", "p7-k3v9q2mx at 127.0.0.1:9\n", "")
    assert page.is_shown("a\n…\nd … f\n", "a\nb\nc\nd e f\n", "")
    assert page.is_shown("error\nout\n", "out\n", "error\n")
    assert not page.is_shown("p1-aaaaaaaa\n", "p8-k3v9q2mx\n", "")
    assert not page.is_shown("s1-bbbbbbbb s1-bbbbbbbb\n", "s1-cccccccc s1-dddddddd\n", "")
    assert not page.is_shown("1 accepted\n", "1 accepted\n", "warning\n")
    assert not page.is_shown("1 accepted\nand more\n", "1 accepted\n", "")
    assert not page.is_shown("a\n…\nd\n", "a\nb\n", "")


@dataclass(frozen=True)
class RealMessages:
    """Messages of the reference data that a page's profile gets, as XPath 1.0 says it."""

    page: str
    profile: str
    message: str  # of the page; it matches, and is published last
    folder: str
    namespace: str
    xpath: str


REAL_MESSAGES = (
    RealMessages(
        "news",
        "banks.xq",
        "wire/gold.xml",
        "newsml-g2",
        "http://iptc.org/std/nar/2006-10-01/",
        "/n:newsItem[n:itemMeta/n:pubStatus/@qcode = 'stat:usable']"
        "/n:contentMeta[n:subject/@qcode = 'medtop:20000350']",
    ),
    RealMessages(
        "market-data",
        "large.xq",
        "spot.xml",
        "fpml",
        "http://www.fpml.org/FpML-5/confirmation",
        "/n:requestConfirmation/n:trade/n:fxSingleLeg"
        "[*/n:paymentAmount[n:currency = 'USD' and n:amount >= 10000000]]",
    ),
    RealMessages(
        "transit",
        "due.xq",
        "times.xml",
        "siri",
        "http://www.siri.org.uk/siri",
        "//n:EstimatedVehicleJourney/n:EstimatedCalls"
        "/n:EstimatedCall[n:StopPointRef = '00003' and n:ExpectedArrivalTime]",
    ),
    RealMessages(
        "warnings",
        "severe.xq",
        "flood.xml",
        "cap",
        "urn:oasis:names:tc:emergency:cap:1.2",
        "/n:alert[n:status = 'Actual']/n:info[n:severity = 'Extreme' or n:severity = 'Severe']",
    ),
)


@pytest.mark.skipif(not REAL.is_dir(), reason="no reference data here")
@pytest.mark.parametrize("real", REAL_MESSAGES, ids=lambda real: real.page)
def test_the_profile_of_a_tutorial_gets_what_it_asks_for_of_real_messages(
    real: RealMessages, newcomer: Shell
) -> None:
    for block in blocks((ROOT / f"docs/tutorials/{real.page}.md").read_text()):
        if block.title:
            write(Path(block.title), block.text)
    (source,) = newcomer.lines("source", "register", "--location", "10,0")
    add = ("profile", "add", real.profile, "--user", f"real-{real.page}", "--location", "30,0")
    (profile,) = newcomer.lines(*add, "--wait")
    messages = [*sorted((REAL / real.folder).iterdir()), Path(real.message)]
    assert newcomer.run("source", "publish", source, *messages, "--json") in (0, 65)
    numbers = {
        line["file"]: line["number"]
        for line in map(json.loads, newcomer.out.splitlines())
        if line.get("accepted") is True
    }
    find = etree.XPath(real.xpath, namespaces={"n": real.namespace})
    expected = [
        numbers[str(file)] for file in messages if str(file) in numbers and find(etree.parse(file))
    ]
    assert expected[-1] == numbers[real.message]
    assert len(expected) > 1, "none of the real messages matches"
    delivered = newcomer.objects("subscribe", profile, "--count", len(expected))
    assert [line["number"] for line in delivered] == expected
