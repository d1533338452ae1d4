"""Random profiles about the messages of a folder: their paths, attributes and values are there.

``CorpusWriter`` fills the templates of ``random_queries`` with paths from an element to one below
it, loosened by chance (``//``, ``*``, another axis), so that most of them select something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from lxml import etree

from benchmarks.random_queries import NAMESPACE, Level, QueryWriter
from demo.independent_parse import Element, parse
from formats.errors import MessageRefused
from formats.text import parse_text

FOLDERS = ("cap", "feeds", "fpml", "newsml-g2", "siri", "yfilter/messages")
_XML = "http://www.w3.org/XML/1998/namespace"
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_WORD = re.compile(r"[\w .:/+-]{1,40}")
_PLACES_MAX = 400  # of which words are taken
_AXES = (
    *("ancestor", "ancestor-or-self", "following-sibling", "preceding-sibling", "following"),
    *("preceding", "descendant-or-self", "self", "parent"),
)


def messages_of(folder: Path) -> Iterator[bytes]:
    """The files that are documents for us; the others are delivered to nobody."""
    for file in sorted(folder.iterdir()):
        message = file.read_bytes()
        try:
            parse_text(message)
        except MessageRefused:
            continue
        yield message


class CorpusWriter(QueryWriter):
    """Writes random expressions about some messages."""

    def __init__(self, rng: Random, level: Level, messages: Sequence[bytes]) -> None:
        super().__init__(rng, level)
        elements = [each for one in messages for each in parse(one).iter(etree.Element)]
        uris = {_uri(name) for each in elements for name in (each.tag, *each.attrib)} - {"", _XML}
        self.namespaces = {"u": NAMESPACE}
        self.namespaces |= {f"n{number}": uri for number, uri in enumerate(sorted(uris))}
        self._prefixes = {uri: f"{prefix}:" for prefix, uri in self.namespaces.items()}
        self._prefixes |= {"": "", _XML: "xml:"}
        self._elements = elements
        some = rng.sample(elements, min(len(elements), _PLACES_MAX))
        values = [value for each in some for value in (each.text or "", *each.attrib.values())]
        words = [word for value in values for word in (value, *value.split())]
        self._words = [word for word in words if _WORD.fullmatch(word)] or ["x"]
        self._here: list[Element] = []  # of the steps whose predicates are being written
        self._bound: dict[str, Element] = {}  # by variables: one of the elements that it may have

    def _path(self, at: str, depth: int) -> str:
        start = self._start(at)
        target = self._target(start)
        # The first path that is written after a variable was named is the one that it is bound to.
        self._bound.setdefault(f"$v{self._names}", target)
        lineage = [target, *target.iterancestors()][::-1]
        if start is not None:
            lineage = lineage[lineage.index(start) + 1 :] if start in lineage else []
        text, slash = {"": "", ".": ""}.get(at, at), "/"
        for node in lineage:
            if node is not target and self._rng.random() < 0.4:
                slash = "//"
                continue
            text += self._joined(text, slash, at) + self._step_to(node, depth)
            slash = "/"
        if not lineage or self._rng.random() < 0.12:
            text += self._joined(text, "/", at) + self._leaf(target)
        return text

    def _start(self, at: str) -> Element | None:
        """Where a path starts: None for the message."""
        if at == ".":
            return self._here[-1] if self._here else None
        return self._bound.get(at) if at else None

    def _target(self, start: Element | None) -> Element:
        if start is None:
            return self._rng.choice(self._elements)
        below = [*start.iterdescendants(etree.Element)]
        return self._rng.choice(below) if below and self._rng.random() < 0.9 else start

    @staticmethod
    def _joined(text: str, slash: str, at: str) -> str:
        if at == "." and not text:
            return ".//" if slash == "//" else ""
        return slash

    def _step_to(self, node: Element, depth: int) -> str:
        step = "*" if self._rng.random() < 0.1 else self._name(node.tag)
        if self._level > Level.XPATH_1 and self._rng.random() < 0.05:
            step = f"*:{etree.QName(node).localname}"
        self._here.append(node)
        while depth > 0 and self._rng.random() < 0.25:
            step += f"[{self._condition('.', depth - 1)}]"
        self._here.pop()
        if self._rng.random() < 0.1:
            step += self._one("[1]", "[2]", "[last()]", "[position() < 3]", "[position() = last()]")
        if self._rng.random() < 0.08:
            other = self._rng.choice(self._elements)
            step += f"/{self._one(*_AXES)}::{self._one('*', self._name(other.tag))}"
        return step

    def _leaf(self, node: Element) -> str:
        names = [f"@{self._name(name)}" for name in node.attrib]
        return self._one(*names, "text()", "@*", "..", ".")

    def _attribute(self, at: str, name: str) -> str:
        """An attribute, or an element without others, that has numbers where numbers are asked
        for."""
        wanted = _NUMBER if name == "n" else _WORD
        start = self._start(at)
        within = self._elements if start is None else [*start.iter(etree.Element)]
        for each in self._rng.sample(within, min(len(within), 12)):
            found = [
                f"/@{self._name(key)}"
                for key, value in each.attrib.items()
                if wanted.fullmatch(value)
            ]
            if not len(each) and wanted.fullmatch(each.text or ""):
                found.append("")
            if found:
                leaf = self._rng.choice(found)
                path = self._name(each.tag)
                if each is start:
                    return (leaf[1:] or ".") if at == "." else at + leaf
                return {".": ".//"}.get(at, f"{at}//") + path + leaf
        return {"": "/*/", ".": ""}.get(at, f"{at}/") + f"@{name}"

    def _name(self, name: str) -> str:
        return f"{self._prefixes[_uri(name)]}{etree.QName(name).localname}"


def _uri(name: str) -> str:
    return etree.QName(name).namespace or ""
