# The C types of turtle_scanner.py.
cimport cython
from formats.graph.striping cimport GraphBuilder
from formats.graph.turtle_terms cimport TurtleTerms

cdef enum:
    NO_TERM = -1

cdef bytes _RDF
cdef int _DEPTH_MAX

@cython.final
cdef class TurtleScanner(TurtleTerms):
    cdef int _depth, _graph, _type, _first, _rest, _nil
    cdef bint _named
    cdef GraphBuilder _builder

    cdef bint _read_lines(self) except -1
    cdef int _read_node(self) except? -1
    cdef bint _read_document(self) except -1
    cdef bint _read_named(self) except -1
    cdef bint _read_triples_to_dot(self) except -1
    cdef bint _read_block(self, int graph) except -1
    cdef bint _read_prefix(self, bytes word, bint dot) except -1
    cdef bint _read_triples(self) except -1
    cdef bint _read_properties(self, int subject) except -1
    cdef bint _read_object(self, int subject, int property) except -1
    cdef bint _read_items(self, int node) except -1
    cdef int _type_term(self) except -1
    cdef int _first_term(self) except -1
    cdef int _rest_term(self) except -1
    cdef int _nil_term(self) except -1
