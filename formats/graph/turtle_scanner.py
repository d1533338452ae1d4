"""TurtleScanner: ordinary Turtle, TriG, N-Triples and N-Quads straight into a GraphBuilder.

It reads in one pass, without an object for a triple.  Whatever it meets beyond the ordinary (an IRI
that is relative or has a host that is no plain name, a rare language tag, escapes in names, RDF
1.2, anything malformed or in doubt) it gives back: pyoxigraph reads the graph again.  So what is
malformed is refused by that one, and what the scanner accepts is what that one makes of it.

Each ``_read`` method stands on the first byte of what it reads and leaves ``_at`` behind it; it
returns False, or no term, for "not ordinary".  No method steps over a byte that it has not looked
at: compiled, the end of the bytes is a NUL, which nothing accepts; uncompiled, reading beyond it is
an IndexError.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.characters import is_utf_8
from formats.errors import MessageRefused
from formats.graph.striping import GraphBuilder
from formats.graph.syntaxes import GraphSyntax
from formats.graph.turtle_terms import TurtleTerms
from formats.graph.vocabulary import RDF

if cython.compiled:
    from cython.cimports.formats.graph.turtle_terms import SPACE
else:
    from formats.graph.turtle_terms import SPACE

if not cython.compiled:
    NO_TERM = -1

_RDF = RDF.encode()
_DEPTH_MAX = 100
_NAMED = {GraphSyntax.TRIG, GraphSyntax.N_QUADS}
_IN_LINES = {GraphSyntax.N_TRIPLES, GraphSyntax.N_QUADS}


def scan(data: bytes, syntax: GraphSyntax, builder: GraphBuilder) -> bool:
    """Add the triples of an ordinary graph to a builder.

    False: it is for pyoxigraph to read, and the builder of no use any more.  Raises MessageRefused,
    with the place, for what the builder does not take.
    """
    return TurtleScanner(data, syntax, builder).scan()


class TurtleScanner(TurtleTerms):
    """One scan."""

    def __init__(self, data: bytes, syntax: GraphSyntax, builder: GraphBuilder) -> None:
        super().__init__(data, builder.terms, syntax in _IN_LINES)
        self._depth = 0
        self._graph = NO_TERM
        self._named = syntax in _NAMED
        self._builder = builder
        self._type = self._first = self._rest = self._nil = NO_TERM

    def scan(self) -> bool:
        """As the function ``scan``."""
        if not is_utf_8(self._message):
            return False
        try:
            return self._read_lines() if self._in_lines else self._read_document()
        except IndexError:  # see above
            return False
        except MessageRefused as refusal:
            before = self._message[: self._at]
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
            raise MessageRefused(refusal.code, refusal.reason, line, column) from None

    # N-Triples and N-Quads

    def _read_lines(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        subject: cython.int
        property: cython.int  # noqa: A001 - RDF's words
        object: cython.int  # noqa: A001
        graph: cython.int
        while True:
            self._skip_space()
            if self._at == self._end:
                return True
            subject = self._read_node()
            if subject < 0:
                return False
            self._skip_blanks()
            if data[self._at] != ord("<"):
                return False
            property = self._read_iri()  # noqa: A001
            if property < 0:
                return False
            self._skip_blanks()
            object = self._read_literal() if data[self._at] == ord('"') else self._read_node()  # noqa: A001
            if object < 0:
                return False
            self._skip_blanks()
            graph = NO_TERM
            if self._named and data[self._at] != ord("."):
                graph = self._read_node()
                if graph < 0:
                    return False
                self._skip_blanks()
            if data[self._at] != ord("."):
                return False
            self._builder.add(subject, property, object, graph)
            self._at += 1
            self._skip_blanks()
            if self._at < self._end and data[self._at] not in (10, 13, 35):  # line end, comment
                return False

    def _read_node(self) -> cython.int:
        """An IRI in brackets or a blank node's label."""
        data: cython.p_const_uchar = self._data
        if data[self._at] == ord("<"):
            return self._read_iri()
        if data[self._at] == ord("_"):
            return self._read_label()
        return NO_TERM

    # Turtle and TriG

    def _read_document(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        while True:
            self._skip_space()
            if self._at == self._end:
                return True
            byte: cython.uchar = data[self._at]
            if byte == ord("@"):
                if not self._read_prefix(b"@prefix", True):
                    return False
            elif (byte | 0x20) == ord("p") and self._is_word(b"prefix"):
                if not self._read_prefix(b"prefix", False):
                    return False
            elif not (self._read_named() if self._named else self._read_triples()):
                return False
            elif data[self._at - 1] != ord("}"):
                if data[self._at] != ord("."):
                    return False
                self._at += 1

    def _read_named(self) -> cython.bint:
        """A block of a graph, or triples of the default one."""
        data: cython.p_const_uchar = self._data
        start: cython.Py_ssize_t = self._at
        graph: cython.int
        if data[self._at] == ord("{"):
            return self._read_block(NO_TERM)
        is_graph: cython.bint = (data[self._at] | 0x20) == ord("g") and self._is_word(b"graph")
        if is_graph:
            self._at += 5
            self._skip_space()
        elif data[self._at] == ord("[") or data[self._at] == ord("("):
            return self._read_triples_to_dot()
        graph = self._read_named_node()
        if graph < 0:
            return False
        self._skip_space()
        if data[self._at] == ord("{"):
            return self._read_block(graph)
        if is_graph:
            return False
        self._at = start
        return self._read_triples_to_dot()

    def _read_triples_to_dot(self) -> cython.bint:
        """Triples in front of a dot, which is left."""
        return self._read_triples() and self._data[self._at] == ord(".")

    def _read_block(self, graph: cython.int) -> cython.bint:
        data: cython.p_const_uchar = self._data
        self._graph = graph
        self._at += 1
        while True:
            self._skip_space()
            if data[self._at] == ord("}"):
                self._at += 1
                self._graph = NO_TERM
                return True
            if not self._read_triples():
                return False
            if data[self._at] == ord("."):
                self._at += 1
            elif data[self._at] != ord("}"):
                return False

    def _read_prefix(self, word: bytes, dot: cython.bint) -> cython.bint:
        """The declaration of a prefix."""
        data: cython.p_const_uchar = self._data
        if not self._message.startswith(word, self._at) and dot:
            return False
        self._at += len(word)
        if not self._kinds[data[self._at]] & SPACE:
            return False
        self._skip_space()
        start: cython.Py_ssize_t = self._at
        self._skip_name()
        if data[self._at] != ord(":"):
            return False
        prefix: bytes = self._data[start : self._at]
        self._at += 1
        self._skip_space()
        start = self._at + 1
        # What is behind a host only could go on with it.
        if data[self._at] != ord("<") or self._skip_iri() != 1:
            return False
        self._namespaces[prefix] = self._data[start : self._at - 1]
        self._known.clear()
        if dot:
            self._skip_space()
            if data[self._at] != ord("."):
                return False
            self._at += 1
        return True

    def _read_triples(self) -> cython.bint:
        """A subject with its properties, up to what is behind them."""
        data: cython.p_const_uchar = self._data
        subject: cython.int
        alone: cython.bint = False
        byte: cython.uchar = data[self._at]
        if byte == ord("["):
            subject = self._terms.new_blank()
            self._at += 1
            self._skip_space()
            alone = data[self._at] != ord("]")
            if alone and not self._read_properties(subject):
                return False
            if data[self._at] != ord("]"):
                return False
            self._at += 1
        elif byte == ord("("):
            self._at += 1
            self._skip_space()
            if data[self._at] == ord(")"):
                self._at += 1
                subject = self._nil_term()
            else:
                subject = self._terms.new_blank()
                if not self._read_items(subject):
                    return False
        else:
            subject = self._read_named_node()
            if subject < 0:
                return False
        self._skip_space()
        if alone and (data[self._at] == ord(".") or data[self._at] == ord("}")):
            return True
        return self._read_properties(subject)

    def _read_properties(self, subject: cython.int) -> cython.bint:
        """Properties with their objects, up to what is behind them."""
        data: cython.p_const_uchar = self._data
        property: cython.int  # noqa: A001
        byte: cython.uchar
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            return False
        while True:
            if data[self._at] == ord("a") and self._kinds[data[self._at + 1]] & SPACE:
                self._at += 1
                property = self._type_term()  # noqa: A001
            elif data[self._at] == ord("_"):
                return False
            else:
                property = self._read_named_node()  # noqa: A001
                if property < 0:
                    return False
            while True:
                self._skip_space()
                if not self._read_object(subject, property):
                    return False
                self._skip_space()
                if data[self._at] != ord(","):
                    break
                self._at += 1
            if data[self._at] != ord(";"):
                break
            while data[self._at] == ord(";"):
                self._at += 1
                self._skip_space()
            byte = data[self._at]
            if byte == ord(".") or byte == ord("]") or byte == ord("}"):
                break
        self._depth -= 1
        return True

    def _read_object(self, subject: cython.int, property: cython.int) -> cython.bint:  # noqa: A002
        """An object, and the triple that it completes."""
        data: cython.p_const_uchar = self._data
        object: cython.int  # noqa: A001
        byte: cython.uchar = data[self._at]
        nested: cython.bint = False
        if byte == ord("["):
            object = self._terms.new_blank()  # noqa: A001
            self._at += 1
            self._skip_space()
            if data[self._at] == ord("]"):
                self._at += 1
            else:
                nested = True
        elif byte == ord("("):
            self._at += 1
            self._skip_space()
            if data[self._at] == ord(")"):
                self._at += 1
                object = self._nil_term()  # noqa: A001
            else:
                object = self._terms.new_blank()  # noqa: A001
                nested = True
        elif byte == ord('"') or byte == ord("'"):
            object = self._read_literal()  # noqa: A001
        elif byte == ord("+") or byte == ord("-") or byte == ord(".") or 48 <= byte <= 57:
            object = self._read_number()  # noqa: A001
        elif byte == ord("t") and self._is_bare(b"true"):
            object = self._read_plain(4, b"boolean")  # noqa: A001
        elif byte == ord("f") and self._is_bare(b"false"):
            object = self._read_plain(5, b"boolean")  # noqa: A001
        else:
            object = self._read_named_node()  # noqa: A001
        if object < 0:
            return False
        self._builder.add(subject, property, object, self._graph)
        if not nested:
            return True
        if byte == ord("("):
            return self._read_items(object)
        if not self._read_properties(object) or data[self._at] != ord("]"):
            return False
        self._at += 1
        return True

    def _read_items(self, node: cython.int) -> cython.bint:
        """The items of a collection that begins with a node, and the bracket behind them."""
        data: cython.p_const_uchar = self._data
        following: cython.int
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            return False
        while True:
            if not self._read_object(node, self._first_term()):
                return False
            self._skip_space()
            if data[self._at] == ord(")"):
                break
            following = self._terms.new_blank()
            self._builder.add(node, self._rest_term(), following, self._graph)
            node = following
        self._at += 1
        self._builder.add(node, self._rest_term(), self._nil_term(), self._graph)
        self._depth -= 1
        return True

    # Terms of RDF itself

    def _type_term(self) -> cython.int:
        if self._type < 0:
            self._type = self._terms.iri(_RDF + b"type")
        return self._type

    def _first_term(self) -> cython.int:
        if self._first < 0:
            self._first = self._terms.iri(_RDF + b"first")
        return self._first

    def _rest_term(self) -> cython.int:
        if self._rest < 0:
            self._rest = self._terms.iri(_RDF + b"rest")
        return self._rest

    def _nil_term(self) -> cython.int:
        if self._nil < 0:
            self._nil = self._terms.iri(_RDF + b"nil")
        return self._nil
