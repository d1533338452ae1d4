"""Dictionary: the words of a source's schema, numbered the same way at every broker.

The dictionary form (docs/formats.md) sends a number for every name and value that the
schema gives away (section 4.3.2 of the paper).  Nothing is disseminated for it: the schema is in
the catalog, and a dictionary follows from the schema alone.

Invariants: ``strings[0]`` is "" and ``values`` does not contain b""; both are otherwise in order
of their code points, without repetition; equal content has an equal ``version``, which names the
dictionary in a payload.
"""

from __future__ import annotations

import hashlib
import pyexpat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from formats.errors import FormatError
from formats.names import XML_NAMESPACE
from formats.schema import Schema
from formats.schema_terms import read_terms

VERSION_BYTES = 4
WORDS_MAX = 16_384  # of each kind; the first in order stay, the others travel as literals
WORD_BYTES_MAX = 256  # a longer word is left out


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Strings (local names, prefixes, namespaces) and values (attribute values, text)."""

    strings: tuple[str, ...]
    values: tuple[bytes, ...]
    version: bytes = field(init=False)
    string_numbers: dict[str, int] = field(init=False, repr=False, compare=False)
    value_numbers: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        encoded = [string.encode() for string in self.strings]
        digest = hashlib.sha256()
        for words in (encoded, self.values):
            digest.update(len(words).to_bytes(4, "little"))
            for word in words:
                digest.update(len(word).to_bytes(4, "little") + word)
        put = object.__setattr__
        put(self, "version", digest.digest()[:VERSION_BYTES])
        put(self, "string_numbers", {word: number for number, word in enumerate(self.strings)})
        put(self, "value_numbers", {word: number for number, word in enumerate(self.values)})

    @property
    def size(self) -> int:
        """The number of its words."""
        return len(self.strings) + len(self.values)


DictionaryLookup: TypeAlias = Callable[[bytes], Dictionary | None]
"""The dictionary of a version, None when it is not known."""


def make_dictionary(strings: Iterable[str] = (), values: Iterable[str] = ()) -> Dictionary:
    """A dictionary of these words, and of the prefix ``xml``, in the order that it must have."""
    names = _ordered({*strings, "xml", XML_NAMESPACE})
    return Dictionary(("", *names), tuple(value.encode() for value in _ordered(set(values))))


def derive_dictionary(schema: Schema) -> Dictionary | None:
    """What every broker derives from a source's schema; None when there is nothing in it."""
    try:
        terms = read_terms(schema)
    except (FormatError, ValueError, pyexpat.ExpatError):  # not a schema that read_schema lets pass
        return None
    return make_dictionary(terms.names, terms.values) if terms.names else None


def _ordered(words: set[str]) -> list[str]:
    short = [word for word in words if word and len(word.encode()) <= WORD_BYTES_MAX]
    return sorted(short)[:WORDS_MAX]


EMPTY_DICTIONARY = make_dictionary()
"""For a source without a schema: what it does not have travels as literals."""


def only(dictionary: Dictionary) -> DictionaryLookup:
    """The lookup that knows one dictionary."""
    return lambda version: dictionary if version == dictionary.version else None


ONLY_EMPTY = only(EMPTY_DICTIONARY)
