"""The messages from a provider to the repositories (MDV, sections 2.2 and 3.4).

::

    <change xmlns="urn:onyx:metadata:1" provider="mdv" number="17" revision="12" time="1732.5">
      <to repository="L1" after="12" digest="0f3a" last="true"/>     its message before this one
      <schema type="text/turtle">...</schema>            first of all, and when it changes
      <rule id="3" name="fast">search ...</rule>         without a text: the rule is gone;
                                                         suspended="why": it matches nothing
      <match resource="http://e/doc.rdf#host"/>          matched: new, or changed
      <drop resource="http://e/doc.rdf#old"/>            no longer matched
      <about resource="http://e/doc.rdf#info"/>          given whole, as each that is matched is
      <kept resource="http://e/doc.rdf#info"/>           not given: the repository has it already
      <triples>...</triples>                             N-Triples: all that is said of both
    </change>

A message goes to all repositories for which the same resources have changed in the same way.  All
messages of a revision are applied together: the last one for a repository says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from formats.characters import find_illegal_character
from formats.element_stream import ElementStream
from formats.errors import MessageRefused, Refusal
from formats.escapes import escaped_text, escaped_value
from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.limits import MessageLimits
from formats.text import parse_text
from registration.metadata.documents import syntax_of

NAMESPACE = "urn:onyx:metadata:1"
_LIMITS = MessageLimits(bytes_max=16 * 1024 * 1024)  # as it comes of itself, or is asked for


class MessageMissing(Refusal):
    """A message of the provider has not come; nothing is changed."""

    kind = "message-missing"


class To(NamedTuple):
    """``after``: the number of the message before it for this repository, 0 for none; ``is_last``:
    the revision has no more for it; ``digest``: ``chained`` of all up to this one, as a provider
    whose rows were put back gives the same numbers to others, or ""."""

    after: int
    is_last: bool
    digest: str = ""


def chained(digest: str, number: int, revision: int, time: float) -> str:
    """The digest of the messages for a repository, with one more."""
    said = f"{digest} {number} {revision} {time!r}"
    return blake2b(said.encode(), digest_size=8).hexdigest()


class RuleSaid(NamedTuple):
    """``text`` "": it is gone; ``suspended``: why it matches nothing for now."""

    id: str
    name: str
    text: str
    suspended: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """``number`` counts the provider's messages, ``revision`` what it has been told;
    ``time``: seconds since 1970.  ``schema``: (media type, text), "" for none; ``about``: the
    resources of which ``triples`` say all, those that are matched among them."""

    provider: str
    number: int
    revision: int
    time: float
    to: Mapping[str, To]
    schema: tuple[str, str] = ("", "")
    rules: tuple[RuleSaid, ...] = ()
    matched: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    triples: str = ""

    def to_bytes(self) -> bytes:
        """ValueError: XML cannot carry a character of it."""
        media_type, text = self.schema
        triples = self.triples  # PERF: most of all messages
        for character, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            triples = triples.replace(character, reference)
        matched = set(self.matched)
        parts = [f'<change xmlns="{NAMESPACE}" provider="{escaped_value(self.provider)}"']
        parts.append(f' number="{self.number}" revision="{self.revision}" time="{self.time!r}">')
        for repository, (after, is_last, digest) in self.to.items():
            last = ' last="true"' if is_last else ""
            last += f' digest="{digest}"' if digest else ""
            parts.append(f'<to repository="{escaped_value(repository)}" after="{after}"{last}/>')
        if media_type:
            parts.append(
                f'<schema type="{escaped_value(media_type)}">{escaped_text(text)}</schema>'
            )
        for rule in self.rules:
            more = (("name", rule.name), ("suspended", rule.suspended))
            said = "".join(f' {word}="{escaped_value(text)}"' for word, text in more if text)
            parts.append(
                f'<rule id="{escaped_value(rule.id)}"{said}>{escaped_text(rule.text)}</rule>'
            )
        about = [each for each in self.about if each not in matched]
        named = {"match": self.matched, "drop": self.dropped, "about": about, "kept": self.kept}
        for word, resources in named.items():
            parts += [f'<{word} resource="{escaped_value(each)}"/>' for each in resources]
        if triples:
            parts.append(f"<triples>{triples}</triples>")
        written = "".join((*parts, "</change>"))
        data = written.encode()
        if not data.isascii() or data.translate(None, _HARMLESS):  # PERF: a twelfth of the search
            place = find_illegal_character(written)
            if place >= 0:
                raise ValueError(f"XML cannot carry the character U+{ord(written[place]):04X}")
        return data


def read_change(data: bytes) -> Change:
    """MessageRefused ``not-a-change``: no message of a metadata provider."""
    stream = parse_text(data, _LIMITS)
    try:
        return _change(stream)
    except (KeyError, ValueError) as error:
        raise MessageRefused(
            "not-a-change", f"no message of a metadata provider: {type(error).__name__} {error}"
        ) from None


def _change(stream: ElementStream) -> Change:
    if stream.name_of(0)[1:] != (NAMESPACE, "change"):
        raise ValueError("the root element is another")
    said = _values(stream, 0)
    to: dict[str, To] = {}
    schema = ("", "")
    rules: list[RuleSaid] = []
    named: dict[str, list[str]] = {"match": [], "drop": [], "about": [], "kept": []}
    triples = ""
    for child in stream.children_of(0):
        word = stream.name_of(child).local
        values = _values(stream, child)
        if word == "to":
            is_last = values.get("last") == "true"
            to[values["repository"]] = To(int(values["after"]), is_last, values.get("digest", ""))
        elif word == "schema":
            schema = values["type"], stream.string_value(child)
        elif word == "rule":
            name, why = values.get("name", ""), values.get("suspended", "")
            rules.append(RuleSaid(values["id"], name, stream.string_value(child), why))
        elif word in named:
            named[word].append(values["resource"])
        elif word == "triples":
            triples = stream.string_value(child)
    kept = set(named["kept"])
    return Change(
        provider=said["provider"],
        number=int(said["number"]),
        revision=int(said["revision"]),
        time=float(said["time"]),
        to=to,
        schema=schema,
        rules=tuple(rules),
        matched=tuple(named["match"]),
        dropped=tuple(named["drop"]),
        about=(*(uri for uri in named["match"] if uri not in kept), *named["about"]),
        kept=tuple(named["kept"]),
        triples=triples,
    )


def _values(stream: ElementStream, element: int) -> dict[str, str]:
    return {
        stream.names[stream.attribute_name[each]].local: stream.attribute_value(each)
        for each in stream.attributes_of(element)
    }


_HARMLESS = b"\t\n\r" + bytes(range(0x20, 0x80))
_OPEN = "; open=true"


def said_schema(media_type: str, is_open: bool) -> str:
    """The type under which a message says a schema."""
    return media_type + (_OPEN if is_open else "")


def read_said_schema(media_type: str, text: str) -> RdfSchema:
    """The schema that a message says; the empty one where none has said one."""
    media_type, is_open = read_schema_type(media_type)
    syntax = syntax_of(media_type) if media_type else GraphSyntax.N_TRIPLES
    return read_schema(text.encode(), syntax, is_open)


def read_schema_type(said: str) -> tuple[str, bool]:
    """The media type, and whether it is open."""
    return said.removesuffix(_OPEN), said.endswith(_OPEN)
