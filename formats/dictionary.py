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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from formats.characters import find_illegal_character
from formats.errors import FormatError
from formats.grammar import EMPTY_GRAMMAR, Grammar
from formats.kernel import AVAILABLE
from formats.schema import Schema
from formats.schema_grammar import read_grammar
from formats.schema_terms import read_terms

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
