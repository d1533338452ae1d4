# The C types of projector.py.
cimport cython
from formats.stream_selection cimport StreamSelection
from yfilter.projection.link_classes cimport LinkClasses
from yfilter.projection.need_walk cimport NeedWalk, OpenBinding

cdef int _NODE, _ATTRIBUTE, _VALUE, _SUBTREE, _PART, _TAG_BYTES, _LINKS_AT_ONCE
cdef object _WORD

@cython.final
cdef class Projector:
    cdef public object table
    cdef NeedWalk _walk
    cdef StreamSelection _selection
    cdef LinkClasses _classes
    cdef int[::1] _settled, _place_element
    cdef unsigned long long[::1] _kept, _values
    cdef unsigned long long _word
    cdef long long _messages, _links_asked, _written, _elements, _elements_kept, _over_limit
    cdef int _settled_count, _at
    cdef Py_ssize_t _shift
    cdef double _whole_share
    cdef object _asked
    cdef list _parts, _places, _names
    cdef dict _words, _accepted
    cdef const int[::1] _element_parent, _element_end, _attribute_start, _attribute_name

    cpdef object project(self, object stream, object asked)
    cdef _project(self, object stream, unsigned long long word, Py_ssize_t shift, object left)
    cdef object _selected(self, Py_ssize_t place, double whole)
    cdef _begin(self, object stream, int elements)
    cdef int _keep(self, int elements) except -1
    cdef unsigned long long _word_of(self, object groups) except? 0
    cdef _keep_of_document(self)
    cdef _mark(self, int element, int kind, object test, unsigned long long links)
    cdef bytes _accepted_by(self, object test)
    cdef int _close(self, int elements) noexcept
    cdef int _settle(self, int elements) except -1
    cdef int _settle_places(self, int element, unsigned long long wholes) except -1
    cdef int _next_place(self) noexcept
    cdef int _distribute(self) except -1
