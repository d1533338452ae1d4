"""The tutorials, run as they stand: files written, commands typed, what comes out compared.

Of a page (``docs/tutorials/*.md``) a fenced block with a title is a file, and a block ``console``
is commands behind ``$`` with what they print, standard output and error in either order.  A command
must succeed unless ``echo $?`` behind it says otherwise.  Ids and ports are other ones each time:
an id of the page stands for the one that came when it was first shown.  A line ``…`` is any lines,
within a line any characters.  Where the reference data is, the pages' profiles get it as well.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lxml import etree

from overlay.topology import Topology, parse_topology
from tests.onyx.networks import small_topology
from tests.onyx.test_cli_network import Shell, shell, write

__all__ = ["shell"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
REAL = ROOT.parent / "shared" / "data"

FENCE = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
VARIABLE = re.compile(r"(\b[sp]\d+-[a-z0-9]{8}\b|127\.0\.0\.1:\d+|^…\n|…)", re.MULTILINE)


@dataclass
class Page:
    """A page that is followed in the current directory; ``ids`` are its ids and the real ones."""

    text: str
    ids: dict[str, str] = field(default_factory=dict)

    def follow(self, shell: Shell) -> None:
        for kind, title, text in FENCE.findall(self.text):
            if title:
                write(Path(title), text)
            elif kind == "console":
                self.type_all(shell, COMMAND.findall(text))

    def type_all(self, shell: Shell, commands: list[tuple[str, str]]) -> None:
        """Commands, each with what the page shows of it."""
        for number, (command, shown) in enumerate(commands):
            program, *words = shlex.split(command)
            if program == "echo":
                continue
            assert program == "onyx", command
            code = shell.run(*(self.ids.get(word, word) for word in words))
            after = commands[number + 1 : number + 2]
            expected = int(after[0][1]) if after and after[0][0] == "echo $?" else 0
            assert code == expected, f"{command}\n{shell.err}"
            assert self.is_shown(shown, shell.out, shell.err), (
                f"{command} printed\n{shell.out}{shell.err}but the page shows\n{shown}"
            )

    def is_shown(self, shown: str, out: str, err: str) -> bool:
        """Whether a page that says ``shown`` is right; its new ids are known afterwards."""
        names: dict[str, str] = {}
        pattern = "".join(self._as_pattern(part, names) for part in VARIABLE.split(shown))
        for printed in (out + err, err + out):
            if found := re.fullmatch(pattern, printed):
                self.ids |= {name: found[group] for name, group in names.items()}
                return True
        return False

    def _as_pattern(self, part: str, names: dict[str, str]) -> str:
        """A piece of what is shown; ``names`` are the groups of ids that are shown first here."""
        if part == "…\n":
            return r"(?:.*\n)*"
        if part == "…":
            return ".*"
        if part.startswith("127.0.0.1:"):
            return r"127\.0\.0\.1:\d+"
        if not VARIABLE.fullmatch(part) or part in self.ids:
            return re.escape(self.ids.get(part, part))
        if part in names:
            return f"(?P={names[part]})"
        names[part] = f"id{len(names)}"
        return f"(?P<{names[part]}>{part[0]}\\d+-[a-z0-9]{{8}})"


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


def test_the_network_of_the_tutorials_is_the_one_of_the_tests(tmp_path: Path) -> None:
    (_, _, text), *_ = FENCE.findall((ROOT / "docs" / "tutorials" / "index.md").read_text())

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
    for _, title, text in FENCE.findall((ROOT / f"docs/tutorials/{real.page}.md").read_text()):
        if title:
            write(Path(title), text)
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
