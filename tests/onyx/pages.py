"""Documents, run as they stand: files written, commands typed, what comes out compared.

Of a page a fenced block with a title is a file, and one with lines ``$ COMMAND`` is commands with
what they print, standard output and error in either order; so is a block ``sh`` whose lines begin
with ``onyx``.  A comment ``<!-- not run: WHY -->`` before a block has its commands read alone.  A
command must succeed unless ``echo $?`` behind it, or an error that is shown, says otherwise.  Ids
and addresses are other ones each time: an id of the page stands for the one that came when it was
first shown.  A line ``…`` is any lines, within a line any characters.  Where nothing is shown,
anything may be printed.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from onyx.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r'(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
HEREDOC = re.compile(r"cat > (\S+) <<'END'")
NOTE = re.compile(r"\s+#\s.*$|\s{3,}\S.*$")  # behind a command, for people
PROGRESS = re.compile(r"^onyx: [\d,]+ of [\d,]+ published, .*\n", re.MULTILINE)  # of slow work
VARIABLE = re.compile(r"(\b[sp]\d+-[a-z0-9]{8}\b|127\.0\.0\.1:\d+|^…\n|…)", re.MULTILINE)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class Types(Protocol):
    """Types words of ``onyx``."""

    out: str
    err: str

    def run(self, *words: object) -> int:
        """The exit code; what was printed is in ``out`` and ``err``."""


@dataclass(frozen=True)
class Block:
    """``why_not`` it is run, "" for one that is; ``commands``, each with what the page shows."""

    why_not: str
    kind: str
    title: str
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        text = self.text
        if self.kind in ("sh", "bash", "") and "$ " not in text:
            text = re.sub(r"^onyx ", "$ onyx ", text, flags=re.MULTILINE)
        found: list[tuple[str, str]] = []
        lines = iter(text.splitlines(keepends=True))
        for line in lines:
            if not line.startswith("$ "):
                if found:
                    found[-1] = found[-1][0], found[-1][1] + line
                continue
            command = line[2:].rstrip("\n")
            while command.endswith("\\"):
                command = command[:-1] + " " + next(lines).removeprefix("> ").strip()
            if HEREDOC.match(command):
                for more in lines:
                    if more == "END\n":
                        break
                    command += "\n" + more.rstrip("\n")
            found.append((command, ""))
        return found


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(text)]


@dataclass(frozen=True)
class Command:
    """A line that is typed: words of ``onyx`` with what a pipe gives it, or of another program."""

    words: tuple[str, ...]
    given: str | None = None
    to: str | None = None

    @classmethod
    def read(cls, line: str) -> Command:
        words = shlex.split(NOTE.sub("", line))
        given = to = None
        if ">" in words:
            to, words = words[words.index(">") + 1], words[: words.index(">")]
        if "|" in words:
            before, after = words[: words.index("|")], words[words.index("|") + 1 :]
            is_given = before[0] == "echo" and after[0] == "onyx"
            words, given = (after, f"{before[1]}\n") if is_given else (before, None)
        while "=" in words[0] and len(words) > 1:  # a variable for this command
            words = words[1:]
        return cls(tuple(words), given, to)

    def check(self) -> None:
        """That there is such a command with such options, where it is one of ``onyx``."""
        if self.words[:1] == ("onyx",):
            build_parser(self.words[1:2]).parse_args(self.words[1:])


@dataclass
class Page:
    """A page that is followed in the current directory; ``ids`` are its ids, and addresses, and the
    real ones."""

    text: str
    ids: dict[str, str] = field(default_factory=dict)
    _waiting: list[Command] = field(default_factory=list)

    def follow(self, shell: Types) -> None:
        for block in blocks(self.text):
            if block.title:
                write(Path(block.title), block.text)
            elif not block.why_not:
                self.type_all(shell, block.commands)
        assert not self._waiting, "nothing is published for a subscriber of the page"

    def type_all(self, shell: Types, commands: list[tuple[str, str]]) -> None:
        """Commands, each with what the page shows of it."""
        for number, (line, shown) in enumerate(commands):
            program = line.split()[0]
            if found := HEREDOC.match(line):
                write(Path(found[1]), line.partition("\n")[2] + "\n")
                continue
            if program in ("export", "cat") or line == "echo $?":
                continue
            command = Command.read(line)
            if command.words[:2] == ("onyx", "up"):
                command.check()  # the network of the page runs already
                continue
            if command.words[:2] == ("onyx", "subscribe") and "--count" not in command.words:
                self._waiting.append(command)  # it ends when something has come
                continue
            code = self._type(shell, command)
            after = commands[number + 1 : number + 2]
            is_told = bool(after) and after[0][0] == "echo $?"
            is_refused = code and shown.startswith(("onyx: ", "-: "))
            expected = int(after[0][1]) if is_told else code if is_refused else 0
            assert code == expected, f"{line}\n{shell.err}"
            assert (not shown.strip() and not is_told) or self.is_shown(
                shown, shell.out, shell.err
            ), f"{line} printed\n{shell.out}{shell.err}but the page shows\n{shown}"
            if command.words[:3] == ("onyx", "source", "publish"):
                self._take_results(shell)

    def _take_results(self, shell: Types) -> None:
        """Of those who wait for something to be published; the page shows them in any block."""
        for command in self._waiting:
            assert self._type(shell, Command((*command.words, "--count", "1"))) == 0, shell.err
            assert shell.out in self.text, f"{command} printed\n{shell.out}"
        self._waiting.clear()

    def _type(self, shell: Types, command: Command) -> int:
        words = [self._real(word) for word in command.words]
        if words[0] != "onyx":
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            shell.out, shell.err = done.stdout + "\n" * (not done.stdout.endswith("\n")), ""
            return done.returncode
        words = [name for word in words[1:] for name in _expanded(word)]
        with _standard_input(command.given):
            code = shell.run(*words)
        if command.to is not None:
            write(Path(command.to), shell.out)
        return code

    def _real(self, word: str) -> str:
        for name, real in self.ids.items():
            word = word.replace(name, real)
        return word

    def is_shown(self, shown: str, out: str, err: str) -> bool:
        """Whether a page that says ``shown`` is right; its new ids are known afterwards."""
        names: dict[str, str] = {}
        err = PROGRESS.sub("", err)
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
            return re.sub(r"(?<=\S)(\\ ){2,}", " {2,}", re.escape(self.ids.get(part, part)))
        if part in names:
            return f"(?P={names[part]})"
        names[part] = f"id{len(names)}"
        return f"(?P<{names[part]}>{part[0]}\\d+-[a-z0-9]{{8}})"


def _expanded(word: str) -> list[str]:
    """As a shell does it."""
    return sorted(str(path) for path in Path().glob(word)) if "*" in word else [word]


@contextmanager
def _standard_input(text: str | None) -> Iterator[None]:
    former = sys.stdin
    if text is not None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        yield
    finally:
        sys.stdin = former
