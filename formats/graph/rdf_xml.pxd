# The C types of rdf_xml.py, and the names of its numbers.
cimport cython
from formats.graph.rdf_attributes cimport RdfAttributes
from formats.graph.striping cimport GraphBuilder
from formats.graph.terms cimport Terms

cpdef enum:
    # What an open element is.
    DOCUMENT = 0
    NODE = 1
    PROPERTY = 2
    COLLECTION = 3

cdef int _NONE
cdef bytes _RDF

@cython.final
cdef class RdfXmlReader:
    cdef object _stream
    cdef GraphBuilder _out
    cdef Terms _terms
    cdef RdfAttributes _attributes
    cdef Py_ssize_t _literal_bytes_max
    cdef int[::1] _given
    cdef const int[::1] _element_name, _element_end, _attribute_name
    cdef const unsigned char[::1] _content_kind
    cdef const int[::1] _content_parent, _content_next, _content_offset
    cdef bytes _content_octets
    cdef const unsigned char* _content_values
    cdef int[::1] _kind_of_name, _term_of_name
    cdef int[::1] _kind, _end, _subject, _property, _statement, _items, _last_cell
    cdef set _ids
    cdef int _top, _content, _type

    cpdef read(self)
    cdef int _read_node(self, int element) except -1
    cdef _refer_to(self, int node)
    cdef _add_cell(self, int row, int cell)
    cdef int _read_property(self, int element) except -1
    cdef int _read_parse_type(
        self, int element, int subject, int property_term, int statement
    ) except -1
    cdef int _object_of_leaf(self, int element) except -1
    cdef _add_attribute(self, int subject, int attribute)
    cdef _add(self, int subject, int property_term, int object_term, int statement)
    cdef int _literal(self, bytes value) except -1
    cdef int _new_id(self) except -1
    cdef int _rdf_term(self, bytes local) except -1
    cdef int _term_of(self, int name) except -1
    cdef int _kind_of_element(self, int element) except -1
    cdef void _push(self, int kind, int element, int subject) noexcept
    cdef _close_before(self, int element)
    cdef bytes _text_of(self, int element)
    cdef _check_content(self, int element)
    cdef _refuse_name(self, int element)
