"""Terms: the IRIs, blank nodes and literals of one graph, each once, numbered from 0.

Whoever reads a graph, from whatever syntax, asks here for the number of each term that it meets and
gives the numbers to a GraphBuilder.  Values are bytes of UTF-8.  Term equality is RDF's: the same
kind, characters, datatype and language (in lower case), so ``"5"^^xsd:integer`` and
``"05"^^xsd:integer`` are two terms.

A term is refused where it is met: longer than its bound, or with a character that no XML text can
hold (RDF allows U+0000 and others).  The refusal has no place; the reader knows it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits
from formats.graph.literal_values import ValueKind, derived_value, value_kind

if not cython.compiled:
    IRI, BLANK, STRING, TEXT, LITERAL = range(5)  # kinds of terms
    NO_TERM = -1

XSD_STRING = b"http://www.w3.org/2001/XMLSchema#string"


class Terms:
    """Every list is by a term's number.

    ``kinds``: IRI, BLANK, STRING (xsd:string), TEXT (with a language) or LITERAL (any other).
    ``values``: IRI, label or lexical form.  ``details``: the number of a LITERAL's datatype, an
    IRI; NO_TERM otherwise.  ``languages``: that of a TEXT.  ``derived``: what a valid numeric or
    temporal literal is as a number (``literal_values``), and ``value_kinds`` which of the two.
    """

    def __init__(self, limits: GraphLimits) -> None:
        self.kinds: list[int] = []
        self.values: list[bytes] = []
        self.details: list[int] = []
        self.languages: list[bytes] = []
        self.derived: list[bytes] = []
        self.value_kinds: list[int] = []
        self._iri_bytes_max = limits.iri_bytes_max
        self._literal_bytes_max = limits.literal_bytes_max
        self._iris: dict[bytes, int] = {}
        self._blanks: dict[bytes, int] = {}
        self._strings: dict[bytes, int] = {}
        self._texts: dict[tuple[bytes, bytes], int] = {}
        self._literals: dict[tuple[bytes, int], int] = {}
        self._datatype_kinds: dict[int, int] = {}

    def iri(self, value: bytes) -> cython.int:
        """The number of an absolute IRI, which the caller has checked to be one."""
        found = self._iris.get(value)
        if found is None:
            if len(value) > self._iri_bytes_max:
                raise MessageRefused(
                    "iri-too-long", f"an IRI has more than {self._iri_bytes_max} bytes"
                )
            self._check(value)
            found = self._new(IRI, value, NO_TERM, b"")
            self._iris[value] = found
        return found

    def has_iri_below(self, start: bytes) -> bool:
        """Whether some IRI begins so."""
        return any(iri.startswith(start) for iri in self._iris)

    def blank(self, label: bytes) -> cython.int:
        """The number of the blank node that has a label in this message."""
        found = self._blanks.get(label)
        if found is None:
            found = self._new(BLANK, label, NO_TERM, b"")
            self._blanks[label] = found
        return found

    def new_blank(self) -> cython.int:
        """The number of a blank node that has no label."""
        return self._new(BLANK, b"", NO_TERM, b"")

    def string(self, value: bytes) -> cython.int:
        """The number of an xsd:string."""
        found = self._strings.get(value)
        if found is None:
            self._check_literal(value)
            found = self._new(STRING, value, NO_TERM, b"")
            self._strings[value] = found
        return found

    def text(self, value: bytes, language: bytes) -> cython.int:
        """The number of a string with its language, a well-formed tag of ASCII."""
        key = (value, language.lower())
        found = self._texts.get(key)
        if found is None:
            self._check_literal(value)
            found = self._new(TEXT, value, NO_TERM, key[1])
            self._texts[key] = found
        return found

    def literal(self, value: bytes, datatype: cython.int) -> cython.int:
        """The number of a literal whose datatype is an IRI of this number."""
        key = (value, datatype)
        found = self._literals.get(key)
        if found is None:
            if self.values[datatype] == XSD_STRING:
                return self.string(value)
            self._check_literal(value)
            found = self._new(LITERAL, value, datatype, b"")
            kind = self._datatype_kinds.get(datatype)
            if kind is None:
                kind = self._datatype_kinds[datatype] = value_kind(self.values[datatype])
            if kind != ValueKind.NONE:
                derived = derived_value(value, kind)
                if derived:
                    self.derived[found] = derived
                    self.value_kinds[found] = kind
            self._literals[key] = found
        return found

    def _new(
        self, kind: cython.int, value: bytes, detail: cython.int, language: bytes
    ) -> cython.int:
        self.kinds.append(kind)
        self.values.append(value)
        self.details.append(detail)
        self.languages.append(language)
        self.derived.append(b"")
        self.value_kinds.append(0)
        return len(self.kinds) - 1

    def _check_literal(self, value: bytes) -> None:
        if len(value) > self._literal_bytes_max:
            raise MessageRefused(
                "literal-too-long", f"a literal has more than {self._literal_bytes_max} bytes"
            )
        self._check(value)

    def _check(self, value: bytes) -> None:
        data: cython.p_const_uchar = value
        byte: cython.uchar
        at: cython.Py_ssize_t
        size: cython.Py_ssize_t = len(value)
        for at in range(size):
            byte = data[at]
            if byte < 0x20:
                if byte != 0x09 and byte != 0x0A and byte != 0x0D:
                    _refuse_character(byte)
            elif byte == 0xEF and data[at + 1] == 0xBF and data[at + 2] >= 0xBE:
                _refuse_character(0xFFC0 | data[at + 2] & 0x3F)


def _refuse_character(code: int) -> None:
    raise MessageRefused(
        "bad-character",
        f"the character U+{code:04X} cannot be carried: XML has no way to write it",
    )
