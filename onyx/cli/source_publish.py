"""``onyx source publish | resume``: publish messages."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Self

import trio

from formats.media_types import media_type_of
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import (
    MEDIA_TYPE,
    STANDARD_INPUT,
    check_once,
    expand,
    print_json,
    read_input,
    say,
    tell_of,
)
from onyx.cli.verb import Subparsers, add_arguments, add_verb
from onyx.client_values import Outcome
from onyx.data_source import DataSource
from onyx.errors import EXIT_DATA, EXIT_OK, UnreadableInput, UsageError
from onyx.registration_client import PATIENCE_SECONDS
from overlay.plain_text import PlainStream

# -------------------------------------------------------------------------------------------------
# Progress: how far something is that takes its time, on standard error.


SECONDS = 2.0  # what takes longer says how far it is, so often
SECONDS_ON_A_TERMINAL = 0.1  # where one line is written over and over


class Progress:
    """A context manager: of ``total`` things, how many were ``done`` ("published"); in the end how
    many in which time, if it took long enough to be shown, or ``is_shown`` says so."""

    def __init__(self, done: str, total: int, *, is_shown: bool = False) -> None:
        self._what = done
        self._total = total
        self._count = self._bytes = 0
        self._is_terminal = sys.stderr.isatty()
        self._pause = SECONDS_ON_A_TERMINAL if self._is_terminal else SECONDS
        self._begun = monotonic()
        self._next = self._begun + SECONDS
        self._is_shown = is_shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            size = f", {self._bytes:,} bytes" if self._bytes else ""
            self._write(f"{self._said()}{size} in {monotonic() - self._begun:.1f} s", end="\n")

    def note(self, bytes_: int = 0, count: int = 1) -> None:
        """So many more are done; so many bytes were read up to now."""
        self._count += count
        self._bytes = bytes_
        if monotonic() >= self._next:
            self._is_shown = True
            self._next = monotonic() + self._pause
            self._write(self._said(), end="" if self._is_terminal else "\n")

    def _said(self) -> str:
        rate = self._count / max(1e-3, monotonic() - self._begun)
        return f"{self._count:,} of {self._total:,} {self._what}, {rate:,.0f} a second"

    def _write(self, text: str, end: str) -> None:
        if isinstance(sys.stderr, PlainStream):
            sys.stderr.begin_line_again()
        print(f"onyx: {text}", end=end, file=sys.stderr, flush=True)


PUBLISH_EXAMPLES = """\
  onyx source publish s1 report.xml
  onyx source publish s1 reports/ more/          every file below, in sorted order
  onyx source publish s1 reports/ --glob "*.xml"
  onyx source publish s1 planet.ttl more.jsonld  graphs, by the names of the files
  onyx source publish s1 reports/ --key-from name  once each, however often this is run
  onyx source publish s1 reports/ --journal s1.journal
  curl -s https://example.org/feed | onyx source publish s1 -
  curl -s https://example.org/data | onyx source publish s1 - --media-type text/turtle
"""

RESUME_EXAMPLES = """\
  onyx source resume s1 s1.journal
"""

PUBLISH_DETAILS = """\
Each file is one message: XML, or a graph in Turtle (.ttl), TriG (.trig),
N-Triples (.nt), N-Quads (.nq) or JSON-LD (.jsonld). RDF/XML and RSS 1.0 are XML.
One that is not well-formed, or beyond a limit, is
refused whole and reported as FILE:LINE:COLUMN: reason; the others are published.
Returns when the root broker has all of them on disk.
Exit code 65 when any was refused.

Of a directory it is all files below, without hidden ones; one that is gone when its
turn comes is told and left out.

With a publish key (--key, --key-from) a message is published once, however often
this is run: what the root broker has accepted with the same key from this source, in
the last day (publish_key_age_s), is not published again. So run it again when it was
cut off.

With --journal FILE what is read is in FILE until its outcome is known. What a crash
has left there the next run with FILE publishes first, each message once, or
'onyx source resume'."""

PUBLISHED = {
    "source SOURCE": "its id, as printed by register, or its name",
    "inputs FILE|DIR|-...": "a message, a directory of messages, or standard input (one message)",
}
KEYS = {
    "--key KEY =": "the publish key of the one message",
    "--key-from WHAT{name,content}": "each message has a publish key: its name, as given here, or "
    "what is in it",
}
SENT = {
    "--header NAME=TEXT...": "a header of each message (traceparent: trace it)",
    "--journal FILE": "keep messages there until they are accepted",
    "--glob PATTERN = *": 'of a directory, those files that are named so, as "*.xml" (default: '
    "all)",
}
RESUMED = {
    "source SOURCE": "whose journal it is: its id or its name",
    "journal FILE": "the journal",
}

MESSAGE_BYTES_MAX = 64 * 1024 * 1024  # what is read of a file; the network's own limit is lower


def add_parser(subverbs: Subparsers) -> None:
    """Both."""
    publish = add_verb(
        *(subverbs, "publish", "publish messages", run_publish, PUBLISHED | MEDIA_TYPE),
        details=PUBLISH_DETAILS,
        examples=PUBLISH_EXAMPLES,
    )
    keys = publish.add_mutually_exclusive_group()
    add_arguments(keys, KEYS)
    add_arguments(publish, SENT)
    resume = add_verb(
        *(subverbs, "resume", "publish what a crash has left in a journal", run_publish, RESUMED),
        details="Each message that 'onyx source publish --journal FILE' was cut off with, once.\n"
        "Exit code 65 when any was refused.",
        examples=RESUME_EXAMPLES,
    )
    resume.set_defaults(inputs=[], key="", key_from=None, media_type=None, glob="*", header=[])
    for parser in (publish, resume):
        add_client_arguments(parser)


async def run_publish(arguments: argparse.Namespace) -> int:
    check_once(arguments.inputs)
    names = list(expand(arguments.inputs, arguments.glob))
    if not names and not arguments.journal.exists():
        raise UnreadableInput(f"{arguments.journal} does not exist")
    if arguments.key and len(names) != 1:
        raise UsageError(f"--key is of one message, here are {len(names)}; --key-from is for many")
    if arguments.key_from == "name" and STANDARD_INPUT in names:
        raise UsageError("standard input has no name; give --key, or --key-from content")
    publication = _Publication(arguments, names)
    await publication.run()
    counts = publication.counts
    said = {name: count for name, count in counts.items() if count or name == "accepted"}
    each = ", ".join(f"{count} {name}" for name, count in said.items())
    text = f"{counts.total() - counts['gone']} published by {arguments.source}: {each}"
    tell_of(arguments, {"event": "done", **counts, "bytes": publication.bytes}, text)
    return EXIT_DATA if counts["refused"] else EXIT_OK


class _Publication:
    """``counts``: messages that were accepted, refused, and accepted before, and files that were
    gone; ``bytes`` of all that were read."""

    def __init__(self, arguments: argparse.Namespace, names: list[str]) -> None:
        self.counts = Counter(accepted=0, refused=0, known=0, gone=0)
        self.bytes = 0
        self._arguments = arguments
        self._names = names
        self._sent: deque[str] = deque()  # names of messages whose outcome is open

    async def run(self) -> None:
        arguments = self._arguments
        async with DataSource(
            registration_address(arguments),
            arguments.source,
            patience_seconds=PATIENCE_SECONDS,
            journal=arguments.journal,
        ) as source:
            for key, outcome in source.resumed:
                self._note(f"{arguments.journal} ({key})", outcome)
            with Progress("published", len(self._names)) as progress:
                async with aclosing(source.publish_all(self._messages())) as outcomes:
                    async for outcome in outcomes:
                        self._note(self._sent.popleft(), outcome)
                        progress.note(self.bytes)

    async def _messages(self) -> AsyncIterator[tuple[bytes, str, str, dict[str, str] | None]]:
        headers = dict(self._arguments.header) or None
        for name in self._names:
            try:
                data = await trio.to_thread.run_sync(read_input, name, MESSAGE_BYTES_MAX)
            except UnreadableInput as error:
                if name in self._arguments.inputs or Path(name).exists():
                    raise
                self.counts["gone"] += 1
                say(f"{error}; it is left out")
                continue
            self.bytes += len(data)
            self._sent.append(name)
            media_type = self._arguments.media_type or media_type_of(name)
            yield data, media_type, self._key(name, data), headers

    def _key(self, name: str, data: bytes) -> str:
        """The publish key of a message, "" for none."""
        arguments = self._arguments
        if arguments.key_from == "content":
            return sha256(data).hexdigest()
        key: str = name if arguments.key_from == "name" else arguments.key
        return key

    def _note(self, name: str, outcome: Outcome) -> None:
        self.counts[_kind(outcome)] += 1
        if self._arguments.json:
            print_json({"event": "published", "file": name, **asdict(outcome)})
        elif not outcome.accepted:
            shown = "<stdin>" if name == STANDARD_INPUT else name
            place = "".join(f"{number}:" for number in (outcome.line, outcome.column) if number)
            print(f"{shown}:{place} {outcome.reason} [{outcome.code}]", file=sys.stderr)


def _kind(outcome: Outcome) -> str:
    if not outcome.accepted:
        return "refused"
    return "known" if outcome.is_known else "accepted"
