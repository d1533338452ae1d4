"""Terms: the IRIs, blank nodes and literals of one graph, each once, numbered from 0.

Whoever reads a graph, from whatever syntax, asks here for the number of each term that it meets and
gives the numbers to a GraphBuilder.  Values are bytes of UTF-8.  Term equality is RDF's: the same
kind, characters, datatype and language (in lower case), so ``"5"^^xsd:integer`` and
``"05"^^xsd:integer`` are two terms.

A term is refused where it is met: longer than its bound, or with a character that no XML text can
hold (RDF allows U+0000 and others).  The refusal has no place; the reader knows it.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits
from formats.graph.vocabulary import XSD

if cython.compiled:
    from cython.cimports.formats.graph.literal_values import NO_VALUE, derived_value, value_kind
else:
    from formats.graph.literal_values import NO_VALUE, derived_value, value_kind

if not cython.compiled:
    IRI, BLANK, STRING, TEXT, LITERAL = range(5)  # kinds of terms
    TERM_KIND, TERM_DATATYPE, TERM_VALUE, TERM_WIDTH = range(4)
    NO_TERM = -1

_ROOM = 256  # for terms, to begin with
_XSD_STRING = (XSD + "string").encode()


class Terms:
    """What a term is, by its number.

    ``values``: IRI, label or lexical form.  ``extras``: the language of a TEXT; of a LITERAL that
    is a valid number or time this as a number (``literal_values``); nothing otherwise.  ``kind``,
    ``datatype`` and ``value_kind`` tell the rest.
    """

    def __init__(self, limits: GraphLimits) -> None:
        self.values: list[bytes] = []
        self.extras: list[bytes] = []
        self._count = 0
        self._rows = array("i", bytes(4 * TERM_WIDTH * _ROOM))
        self._iri_bytes_max = limits.iri_bytes_max
        self._literal_bytes_max = limits.literal_bytes_max
        self._is_xml = False
        self._iris: dict[bytes, int] = {}
        self._blanks: dict[bytes, int] = {}
        self._strings: dict[bytes, int] = {}
        self._texts: dict[tuple[bytes, bytes], int] = {}
        self._literals: dict[tuple[bytes, int], int] = {}
        self._datatype_kinds: dict[int, int] = {}

    def trust_characters(self) -> None:
        """All terms come from an XML document, so that it can hold their characters."""
        self._is_xml = True

    def kind(self, term: cython.int) -> cython.int:
        """IRI, BLANK, STRING (xsd:string), TEXT (with a language) or LITERAL (any other)."""
        return self._rows[TERM_WIDTH * term + TERM_KIND]

    def datatype(self, term: cython.int) -> cython.int:
        """The number of the datatype of a LITERAL, an IRI; NO_TERM of others."""
        return self._rows[TERM_WIDTH * term + TERM_DATATYPE]

    def value_kind(self, term: cython.int) -> cython.int:
        """How a LITERAL is read, if it has a value; NO_VALUE otherwise."""
        return self._rows[TERM_WIDTH * term + TERM_VALUE]

    def count(self) -> cython.int:
        """How many terms there are."""
        return self._count

    def iri(self, value: bytes) -> cython.int:
        """The number of an absolute IRI, which the caller has checked to be one."""
        found = self._iris.get(value)
        if found is None:
            if len(value) > self._iri_bytes_max:
                raise MessageRefused(
                    "iri-too-long", f"an IRI has more than {self._iri_bytes_max} bytes"
                )
            self._check(value)
            found = self._new(IRI, value, NO_TERM, NO_VALUE, b"")
            self._iris[value] = found
        return found

    def has_iri_below(self, start: bytes) -> bool:
        """Whether some IRI begins so."""
        return any(iri.startswith(start) for iri in self._iris)

    def blank(self, label: bytes) -> cython.int:
        """The number of the blank node that has a label in this message."""
        found = self._blanks.get(label)
        if found is None:
            found = self._new(BLANK, label, NO_TERM, NO_VALUE, b"")
            self._blanks[label] = found
        return found

    def new_blank(self) -> cython.int:
        """The number of a blank node that has no label."""
        return self._new(BLANK, b"", NO_TERM, NO_VALUE, b"")

    def string(self, value: bytes) -> cython.int:
        """The number of an xsd:string."""
        found = self._strings.get(value)
        if found is None:
            self._check_literal(value)
            found = self._new(STRING, value, NO_TERM, NO_VALUE, b"")
            self._strings[value] = found
        return found

    def text(self, value: bytes, language: bytes) -> cython.int:
        """The number of a string with its language, a well-formed tag of ASCII."""
        key = (value, language.lower())
        found = self._texts.get(key)
        if found is None:
            self._check_literal(value)
            found = self._new(TEXT, value, NO_TERM, NO_VALUE, key[1])
            self._texts[key] = found
        return found

    def literal(self, value: bytes, datatype: cython.int) -> cython.int:
        """The number of a literal whose datatype is an IRI of this number."""
        key = (value, datatype)
        found = self._literals.get(key)
        if found is None:
            if self.values[datatype] == _XSD_STRING:
                return self.string(value)
            self._check_literal(value)
            kind = self._datatype_kinds.get(datatype)
            if kind is None:
                kind = self._datatype_kinds[datatype] = value_kind(self.values[datatype])
            derived = derived_value(value, kind) if kind else b""
            found = self._new(LITERAL, value, datatype, kind if derived else NO_VALUE, derived)
            self._literals[key] = found
        return found

    def _new(
        self,
        kind: cython.int,
        value: bytes,
        datatype: cython.int,
        value_kind: cython.int,
        extra: bytes,
    ) -> cython.int:
        number: cython.int = self._count
        row: cython.Py_ssize_t = TERM_WIDTH * number
        if row == len(self._rows):
            longer = array("i", bytes(8 * row))
            longer[:row] = array("i", bytes(self._rows))
            self._rows = longer
        self._rows[row + TERM_KIND] = kind
        self._rows[row + TERM_DATATYPE] = datatype
        self._rows[row + TERM_VALUE] = value_kind
        self.values.append(value)
        self.extras.append(extra)
        self._count = number + 1
        return number

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
        size: cython.Py_ssize_t = 0 if self._is_xml else len(value)
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
