"""TurtleTerms: the terms of ordinary Turtle and its kin, as numbers, and what is between them.

The lower half of TurtleScanner, whose docstring says what is ordinary, and where methods stand.
A number below 0 is no term.
"""

from __future__ import annotations

import re

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.graph.terms import Terms
from formats.graph.vocabulary import RDF, XSD

if not cython.compiled:
    NAME, LOCAL, IRI_BYTE, HOST, SPACE, BEHIND, ESCAPABLE = 1, 2, 4, 8, 16, 32, 64
    NO_TERM = -1

_RDF, _XSD = RDF.encode(), XSD.encode()
_LANGUAGE = re.compile(rb"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?")
_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))", re.DOTALL)
_ESCAPED = {
    b"t": b"\t",
    b"b": b"\b",
    b"n": b"\n",
    b"r": b"\r",
    b"f": b"\f",
    b'"': b'"',
    b"'": b"'",
    b"\\": b"\\",
}


def _kinds() -> bytes:
    """What each byte may be part of: NAME a prefix, LOCAL the local part of a name; IRI_BYTE an IRI
    behind its host, HOST that; SPACE; BEHIND: it may follow a name or a number; ESCAPABLE: with a
    backslash it may be in a local part, and then in an IRI (not ``#`` and ``%``)."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    name = letters + b"_-"
    # Beyond ASCII U+00C0 to U+CFFF, without U+0080 to U+00BF, some of which no IRI may have.
    beyond = bytes([*range(0x80, 0xC0), *range(0xC3, 0xED)])
    kinds = bytearray(256)
    for bit, members in (
        (1, name),
        (2, name + b".:"),
        (4, name + b".~!$&'()*+,;=:@/?" + beyond),
        (8, name + b".~"),
        (16, b" \t\r\n"),
        (32, b" \t\r\n,;.)]}#"),
        (64, b"_~.-!$&'()*+,;=/?@"),
    ):
        for byte in members:
            kinds[byte] |= bit
    return bytes(kinds)


_KINDS = _kinds()


class TurtleTerms:
    """``in_lines``: as N-Triples has them, without prefixes."""

    def __init__(self, data: bytes, terms: Terms, in_lines: bool) -> None:
        self._message = data
        self._data = data
        self._kinds = _KINDS
        self._at = 0
        self._end = len(data)
        self._in_lines = in_lines
        self._terms = terms
        self._namespaces: dict[bytes, bytes] = {}
        self._known: dict[bytes, int] = {}  # prefixed names as they stand
        self._datatypes: dict[bytes, int] = {}

    def _read_named_node(self) -> cython.int:
        """An IRI, a prefixed name or a blank node's label."""
        data: cython.p_const_uchar = self._data
        if data[self._at] == ord("<"):
            return self._read_iri()
        if data[self._at] == ord("_"):
            return self._read_label()
        return self._read_prefixed()

    def _read_iri(self) -> cython.int:
        start: cython.Py_ssize_t = self._at + 1
        if not self._skip_iri():
            return NO_TERM
        return self._terms.iri(self._data[start : self._at - 1])

    def _skip_iri(self) -> cython.int:
        """Step over an absolute IRI in brackets; 0: not ordinary, 2: it ends with its host."""
        data: cython.p_const_uchar = self._data
        kinds: cython.p_const_uchar = self._kinds
        at: cython.Py_ssize_t = self._at + 1
        fragments: cython.int = 0
        if not kinds[data[at]] & NAME or data[at] < ord("A") or data[at] == ord("_"):
            return 0
        while kinds[data[at]] & NAME and data[at] != ord("_"):
            at += 1
        if data[at] != ord(":"):
            return 0
        at += 1
        if data[at] == ord("/") and data[at + 1] == ord("/"):
            at += 2
            while kinds[data[at]] & HOST:
                at += 1
            if data[at] == ord(":"):
                at += 1
                while 48 <= data[at] <= 57:
                    at += 1
            if data[at] == ord(">"):
                self._at = at + 1
                return 2
            if data[at] != ord("/") and data[at] != ord("#") and data[at] != ord("?"):
                return 0
        while True:
            while kinds[data[at]] & IRI_BYTE:
                at += 1
            if data[at] == ord(">"):
                self._at = at + 1
                return 1
            if data[at] == ord("#") and not fragments:
                fragments = 1
            elif data[at] != ord("%") or not (_is_hex(data[at + 1]) and _is_hex(data[at + 2])):
                return 0
            at += 1

    def _read_label(self) -> cython.int:
        """A blank node with a label."""
        data: cython.p_const_uchar = self._data
        start: cython.Py_ssize_t = self._at + 2
        if data[self._at + 1] != ord(":"):
            return NO_TERM
        self._at = start
        while self._kinds[data[self._at]] & NAME or data[self._at] == ord("."):
            self._at += 1
        while self._at > start and data[self._at - 1] == ord("."):
            self._at -= 1
        if (
            self._at == start
            or data[start] == ord("-")
            or data[start] == ord(".")
            or not self._kinds[data[self._at]] & BEHIND
        ):
            return NO_TERM
        return self._terms.blank(self._data[start : self._at])

    def _read_prefixed(self) -> cython.int:
        data: cython.p_const_uchar = self._data
        start: cython.Py_ssize_t = self._at
        colon: cython.Py_ssize_t
        escaped: cython.bint
        self._skip_name()
        colon = self._at
        if data[colon] != ord(":"):
            return NO_TERM
        self._at += 1
        escaped = self._skip_local()
        if not self._kinds[data[self._at]] & BEHIND:
            return NO_TERM
        token: bytes = self._data[start : self._at]
        found = self._known.get(token)
        if found is not None:
            return found
        if data[colon + 1] == ord("-") or data[colon + 1] == ord("."):
            return NO_TERM
        namespace = self._namespaces.get(self._data[start:colon])
        if namespace is None:
            return NO_TERM
        local: bytes = self._data[colon + 1 : self._at]
        if escaped:
            # Without a host a slash could begin one.
            if b"://" not in namespace:
                return NO_TERM
            local = local.replace(b"\\", b"")
        number: cython.int = self._terms.iri(namespace + local)
        self._known[token] = number
        return number

    def _skip_local(self) -> cython.bint:
        """Step over the local part of a name, without dots at its end; whether it has escapes."""
        data: cython.p_const_uchar = self._data
        kinds: cython.p_const_uchar = self._kinds
        at: cython.Py_ssize_t = self._at
        escaped: cython.bint = False
        end: cython.Py_ssize_t = at  # behind the last byte that is no dot
        while True:
            if kinds[data[at]] & LOCAL:
                at += 1
                if data[at - 1] != ord("."):
                    end = at
            elif data[at] == ord("\\") and kinds[data[at + 1]] & ESCAPABLE:
                escaped = True
                at += 2
                end = at
            else:
                self._at = end
                return escaped

    def _skip_name(self) -> None:
        """Step over the prefix of a name, which may be nothing."""
        data: cython.p_const_uchar = self._data
        byte: cython.uchar = data[self._at] | 0x20
        if 97 <= byte <= 122:
            while self._kinds[data[self._at]] & NAME:
                self._at += 1

    def _read_literal(self) -> cython.int:
        data: cython.p_const_uchar = self._data
        text = self._read_string()
        if text is None:
            return NO_TERM
        start: cython.Py_ssize_t
        datatype: cython.int
        if data[self._at] == ord("^"):
            if data[self._at + 1] != ord("^"):
                return NO_TERM
            self._at += 2
            if data[self._at] == ord("<"):
                datatype = self._read_iri()
            elif self._in_lines or data[self._at] == ord("_"):
                return NO_TERM
            else:
                datatype = self._read_prefixed()
            # rdf:langString has to have a language.
            if datatype < 0 or self._terms.values[datatype].startswith(_RDF):
                return NO_TERM
            return self._terms.literal(text, datatype)
        if data[self._at] == ord("@"):
            start = self._at + 1
            self._at = start
            while self._kinds[data[self._at]] & NAME:
                self._at += 1
            if not self._kinds[data[self._at]] & BEHIND:
                return NO_TERM
            tag: bytes = self._data[start : self._at]
            return self._terms.text(text, tag) if _LANGUAGE.fullmatch(tag) else NO_TERM
        return self._terms.string(text)

    def _read_string(self) -> bytes | None:
        """What is between quotes, of whichever kind."""
        data: cython.p_const_uchar = self._data
        quote: cython.uchar = data[self._at]
        start: cython.Py_ssize_t = self._at + 1
        at: cython.Py_ssize_t = start
        escaped: cython.bint = False
        quotes: cython.int = 1
        byte: cython.uchar
        if data[at] == quote and data[at + 1] == quote:
            if self._in_lines:
                return None
            quotes = 3
            start = at = at + 2
        while True:
            byte = data[at]
            if byte == quote:
                if quotes == 1 or (data[at + 1] == quote and data[at + 2] == quote):
                    break
                at += 1
            elif byte == ord("\\"):
                escaped = True
                at += 2
                if at > self._end:
                    return None
            elif byte == 0 or (quotes == 1 and (byte == 10 or byte == 13)):
                return None
            else:
                at += 1
        self._at = at + quotes
        value: bytes = self._data[start:at]
        return _unescaped(value) if escaped else value

    def _read_number(self) -> cython.int:
        data: cython.p_const_uchar = self._data
        at: cython.Py_ssize_t = self._at
        digits: cython.Py_ssize_t
        name: bytes = b"integer"
        if data[at] == ord("+") or data[at] == ord("-"):
            at += 1
        digits = at
        while 48 <= data[at] <= 57:
            at += 1
        digits = at - digits
        # A dot may be the end of the graph.
        if data[at] == ord(".") and at + 1 < self._end and 48 <= data[at + 1] <= 57:
            name = b"decimal"
            at += 1
            while 48 <= data[at] <= 57:
                at += 1
                digits += 1
        if not digits:
            return NO_TERM
        if data[at] | 0x20 == ord("e"):
            name = b"double"
            at += 1
            if data[at] == ord("+") or data[at] == ord("-"):
                at += 1
            digits = at
            while 48 <= data[at] <= 57:
                at += 1
            if at == digits:
                return NO_TERM
        if not self._kinds[data[at]] & BEHIND:
            return NO_TERM
        if data[at] == ord(".") and at + 1 < self._end and data[at + 1] | 0x20 == ord("e"):
            return NO_TERM  # 1.e5
        return self._read_plain(at - self._at, name)

    def _read_plain(self, size: cython.Py_ssize_t, name: bytes) -> cython.int:
        """A literal that is written without quotes, of a datatype of XML Schema."""
        start: cython.Py_ssize_t = self._at
        found = self._datatypes.get(name)
        datatype: cython.int
        if found is None:
            datatype = self._terms.iri(_XSD + name)
            self._datatypes[name] = datatype
        else:
            datatype = found
        self._at += size
        return self._terms.literal(self._data[start : self._at], datatype)

    def _is_word(self, word: bytes) -> cython.bint:
        """Whether a keyword stands here, in any case, with white space behind."""
        end: cython.Py_ssize_t = self._at + len(word)
        if end >= self._end or not self._kinds[self._data[end]] & SPACE:
            return False
        return self._message[self._at : end].lower() == word

    def _is_bare(self, word: bytes) -> cython.bint:
        """Whether a word stands here by itself."""
        end: cython.Py_ssize_t = self._at + len(word)
        if not self._message.startswith(word, self._at) or end >= self._end:
            return False
        return self._kinds[self._data[end]] & BEHIND != 0

    # Space

    def _skip_space(self) -> None:
        """Step over white space and comments."""
        data: cython.p_const_uchar = self._data
        # Only here the bytes may end without being malformed.
        while self._at < self._end:
            if self._kinds[data[self._at]] & SPACE:
                self._at += 1
            elif data[self._at] == ord("#"):
                while self._at < self._end and data[self._at] != 10 and data[self._at] != 13:
                    self._at += 1
            else:
                break

    def _skip_blanks(self) -> None:
        """Step over white space within a line."""
        data: cython.p_const_uchar = self._data
        while self._at < self._end and (data[self._at] == 32 or data[self._at] == 9):
            self._at += 1


def _is_hex(byte: cython.uchar) -> cython.bint:
    return 48 <= byte <= 57 or 97 <= byte | 0x20 <= 102


def _unescaped(value: bytes) -> bytes | None:
    """A string without its escapes, or None if one of them is none."""
    faults = []

    def meant(found: re.Match[bytes]) -> bytes:
        digits = found[1] or found[2]
        try:
            return chr(int(digits, 16)).encode() if digits else _ESCAPED[found[3]]
        except (ValueError, KeyError, OverflowError):
            faults.append(found[0])
            return b""

    text = _ESCAPE.sub(meant, value)
    return None if faults else text
