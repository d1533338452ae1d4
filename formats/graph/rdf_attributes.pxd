# The C types of rdf_attributes.py.
cimport cython

cdef int _NONE, _BAD, _OTHER, _OF_SCHEME, _LETTER, _PLUS, _COLON, _LOW_LINE, _NUMBER_SIGN
cdef bytes _KINDS
cdef const unsigned char* _OCTETS

@cython.final
cdef class RdfAttributes:
    cdef object _stream
    cdef const int[::1] _element_depth, _attribute_start, _attribute_name, _attribute_offset
    cdef bytes _attribute_values
    cdef int[::1] _kind_of_name
    cdef readonly int depth
    cdef list _bases, _languages
    cdef int _element, _row
    cdef readonly int[::1] given
    cdef readonly list properties

    cpdef read(self, int element)
    cpdef int kind_of(self, int attribute) except -1
    cpdef check_only(self, int allowed, int also_allowed)
    cpdef bytes value(self, int attribute)
    cpdef bytes name(self, int attribute)
    cpdef bytes iri(self, int attribute)
    cpdef bytes language(self)
    cpdef bytes resolved(self, bytes reference)
    cpdef bytes iri_of_name(self, int name)
    cpdef refuse(self, str code, str reason, int element=*)
    cdef str _name_of(self, int attribute)
    cdef bytes _language_of(self, int attribute)
    cdef bytes _base_of(self, int attribute)

cdef bint _is_absolute(const unsigned char* iri, Py_ssize_t size) noexcept
cdef bint _is_fragment(const unsigned char* reference, Py_ssize_t size) noexcept
cdef bint _is_plain_name(const unsigned char* name, Py_ssize_t size) noexcept
