"""Dictionary: the words and the grammar of a source's schema, the same at every broker.

The dictionary form (docs/formats.md) sends a number for every name and value that the schema gives
away, and nothing for a structure that it lets one expect (section 4.3.2 of the paper).  Nothing is
disseminated for it: the schema is in the catalog, and a dictionary follows from the schema alone.

Invariants: strings and values are in order of their code points, without repetition and never
empty; equal content has an equal ``version``, which names the dictionary in a payload.
"""

from __future__ import annotations

import hashlib
import pyexpat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lxml import etree

from formats.characters import find_illegal_character
from formats.dtd import read_declarations
from formats.errors import FormatError
from formats.grammar import EMPTY_GRAMMAR, ElementDeclaration, Grammar, Name, make_grammar
from formats.kernel import AVAILABLE
from formats.names import XML_NAMESPACE
from formats.schema import Schema, read_roots
from formats.schema_document import RELAXNG, XSD
from formats.schema_files import SchemaFiles
from formats.schema_model import ANYTHING, Elements, Particle, SchemaModel, TextContent
from formats.schema_reader import read_schema_model

# -------------------------------------------------------------------------------------------------
# The Grammar of a schema: what its declarations let one expect, in their order.
#
# Only what has one name can be expected, and what is declared first under a name counts.  A child
# must be there where no choice and no ``least`` of 0 is around it.


_CHILDREN_MAX = 256  # of one element
# Particles looked at, as often as they are referred to; what comes after that is not expected.
_STEPS_MAX = 200_000


def read_grammar(schema: Schema) -> Grammar:
    """The grammar of a schema that ``read_schema`` has accepted."""
    return make_grammar(_Expectations(read_schema_model(schema)).declarations())


class _Expectations:
    def __init__(self, model: SchemaModel) -> None:
        self._model = model
        self._steps = 0

    def declarations(self) -> dict[Name, ElementDeclaration]:
        declarations: dict[Name, ElementDeclaration] = {}
        for declaration in self._model.declarations:
            name, content = declaration.expected, declaration.content
            if name is None or name in declarations:
                continue
            declarations[name] = declared = ElementDeclaration()
            declared.text = content.text is TextContent.ANY
            for child in self._children(content.particle, True):
                declared.children.append(child)
                if len(declared.children) >= _CHILDREN_MAX:
                    break
            for attribute in content.attributes:
                if attribute.expected is not None:
                    declared.add_attribute(attribute.expected, attribute.required)
        return declarations

    def _children(self, particle: Particle, required: bool) -> Iterator[tuple[Name, bool]]:
        self._steps += 1
        if self._steps > _STEPS_MAX:
            return
        required = required and particle.least > 0
        if isinstance(particle, Elements):
            number = particle.declarations[0]
            name = self._model.declarations[number].expected
            if name is not None and number != ANYTHING:
                yield name, required
            return
        for part in particle.parts:
            yield from self._children(part, required and not particle.is_choice)


# -------------------------------------------------------------------------------------------------
# The words that a schema gives away: names, prefixes, namespaces, and values from fixed lists.
#
# A reader of the schema document, not of what it means: a word too many costs a dictionary a few
# bytes, one that is missing travels in the message.  What a schema refers to and has
# not stays unread.  The result depends on nothing but the bytes of the schema.
#
# =========  ==============================================  ====================================
# kind       names                                           values
# =========  ==============================================  ====================================
# DTD        element and attribute names, split at ``:``;    enumerations; defaults and fixed
#            namespaces from ``xmlns`` attributes            values
# XSD        ``name`` of elements and attributes; target     ``xs:enumeration``; ``fixed`` and
#            and imported namespaces; prefixes for these     ``default`` of elements, attributes
# RELAX NG   ``name`` of and in elements and attributes;     ``value``
#            ``ns``; prefixes for these
# =========  ==============================================  ====================================


@dataclass(slots=True)
class SchemaTerms:
    """``names``: local names, prefixes and namespaces alike; ``values``: attribute values and
    text."""

    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)

    def add_qualified(self, name: str) -> None:
        """A name as written: the local part, and its prefix when it has one."""
        self.names.update(part for part in name.partition(":")[::2] if part)


def read_terms(schema: Schema) -> SchemaTerms:
    """The words of a schema that ``read_schema`` has accepted."""
    terms = SchemaTerms()
    if schema.kind == "dtd":
        _read_dtd(schema.files(), terms)
    else:
        _read_document(schema, terms)
    terms.names.discard("")
    terms.values.discard("")
    return terms


def _read_document(schema: Schema, terms: SchemaTerms) -> None:
    read: Callable[[Any, SchemaTerms], None] = _read_xsd if schema.kind == "xsd" else _read_relaxng
    roots = read_roots(schema, schema.files())
    for element in (part for root in roots for part in root.iter(etree.Element)):
        read(element, terms)
        for prefix, namespace in element.nsmap.items():
            if prefix and namespace in terms.names:
                terms.names.add(prefix)


def _read_dtd(files: SchemaFiles, terms: SchemaTerms) -> None:
    def attribute(_element: str, name: str, kind: str, default: str | None, _required: int) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            terms.names.update((name.partition(":")[2], default or ""))
            return
        terms.add_qualified(name)
        terms.values.add(default or "")
        if kind.startswith("("):
            terms.values.update(kind[1:-1].split("|"))

    read_declarations(files, lambda name, _model: terms.add_qualified(name), attribute)


def _read_xsd(element: Any, terms: SchemaTerms) -> None:
    if element.tag in {XSD + "element", XSD + "attribute"}:
        terms.names.add(element.get("name", ""))
        terms.values.update(element.get(kind, "") for kind in ("fixed", "default"))
    elif element.tag == XSD + "enumeration":
        terms.values.add(element.get("value", ""))
    elif element.tag == XSD + "schema":
        terms.names.add(element.get("targetNamespace", ""))
    elif element.tag == XSD + "import":
        terms.names.add(element.get("namespace", ""))


def _read_relaxng(element: Any, terms: SchemaTerms) -> None:
    terms.names.add(element.get("ns", ""))
    if element.tag in {RELAXNG + "element", RELAXNG + "attribute"}:
        _add_resolved(element, element.get("name", ""), terms)
    elif element.tag == RELAXNG + "name":
        _add_resolved(element, element.text or "", terms)
    elif element.tag == RELAXNG + "value":
        terms.values.add(element.text or "")


def _add_resolved(element: Any, name: str, terms: SchemaTerms) -> None:
    terms.add_qualified(name.strip())
    prefix, colon, _ = name.strip().partition(":")
    if colon:
        namespace = element.nsmap.get(prefix, "")
        terms.names.add(XML_NAMESPACE if prefix == "xml" else namespace)


# -------------------------------------------------------------------------------------------------


if TYPE_CHECKING or AVAILABLE:
    from formats.wire import WireModel
else:
    from formats.plain_wire import PlainModel as WireModel

VERSION_BYTES = 4
WORDS_MAX = 16_384  # of each kind; the first in order stay, the others travel as literals
WORD_BYTES_MAX = 256  # a longer word is left out


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Strings (local names, prefixes, namespaces), values (attribute values, text) and a grammar.

    ``model`` is the same for the reader and the writer of payloads.
    """

    strings: tuple[str, ...]
    values: tuple[bytes, ...]
    grammar: Grammar = EMPTY_GRAMMAR
    version: bytes = field(init=False)
    model: WireModel = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for words in ([string.encode() for string in self.strings], self.values):
            digest.update(len(words).to_bytes(4, "little"))
            for word in words:
                digest.update(len(word).to_bytes(4, "little") + word)
        for part in self.grammar.serialized():
            digest.update(part)
        put = object.__setattr__
        put(self, "version", digest.digest()[:VERSION_BYTES])
        put(self, "model", WireModel(self.strings, self.values, self.grammar))

    @property
    def size(self) -> int:
        """The number of its words and names."""
        return len(self.strings) + len(self.values) + len(self.grammar.names)


DictionaryLookup: TypeAlias = Callable[[bytes], Dictionary | None]
"""The dictionary of a version, None when it is not known."""


def make_dictionary(
    strings: Iterable[str] = (), values: Iterable[str] = (), grammar: Grammar = EMPTY_GRAMMAR
) -> Dictionary:
    """A dictionary of these words in the order that it must have."""
    carried = [value for value in set(values) if find_illegal_character(value) < 0]
    return Dictionary(
        tuple(_ordered(set(strings))),
        tuple(value.encode() for value in _ordered(set(carried))),
        grammar,
    )


def derive_dictionary(schema: Schema) -> Dictionary | None:
    """What every broker derives from a source's schema; None when there is nothing in it."""
    try:
        terms = read_terms(schema)
        grammar = read_grammar(schema)
    except (FormatError, ValueError, pyexpat.ExpatError):  # not a schema that read_schema lets pass
        return None
    # What is a name of the grammar need not be a word as well.
    words = terms.names.difference(name for _, name in grammar.names)
    return make_dictionary(words, terms.values, grammar) if terms.names else None


def _ordered(words: set[str]) -> list[str]:
    short = [word for word in words if word and len(word.encode()) <= WORD_BYTES_MAX]
    return sorted(short)[:WORDS_MAX]


EMPTY_DICTIONARY = make_dictionary()
"""For the binary form, and a source without a schema: what it lacks travels as literals."""


def only(dictionary: Dictionary) -> DictionaryLookup:
    """The lookup that knows one dictionary."""
    return lambda version: dictionary if version == dictionary.version else None


ONLY_EMPTY = only(EMPTY_DICTIONARY)
