# The C types of attribute_sets.py.
cimport cython
from formats.wire_bytes cimport WireBytes
from formats.wire_model cimport WireModel
from formats.wire_names cimport WireNames

cdef int _MEMBERS_KEPT_MAX

@cython.final
cdef class AttributeSets:
    cdef WireBytes _source
    cdef WireModel _model
    cdef WireNames _names
    cdef readonly int start, end
    cdef int _size_max, _known, _own, _meanings
    cdef bint _is_own
    cdef object _members, _starts
    cdef int[::1] _member, _start
    cdef long long[::1] _tags
    cdef long long _tag

    cdef begin(self, WireModel model, WireNames names, int size_max)
    cdef int choose(self, int number) noexcept
    cdef int member(self, int i) noexcept
    cdef int read(self) except -1
    cdef int _read_name(self) except -1
