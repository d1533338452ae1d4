# The C types of wire_scope.py.
cimport cython
from formats.column_writer cimport ColumnWriter
from formats.wire_bytes cimport WireBytes
from formats.wire_names cimport WireNames

cdef int NO_BINDING, UNRESOLVED, XML_BINDING

@cython.final
cdef class WireScope:
    cdef WireBytes _source
    cdef WireNames _names
    cdef readonly int announced
    cdef int _declarations_max, _prefixes, undo
    cdef list _bindings
    cdef object _undo_prefixes, _undo_bindings, _undo_elements
    cdef int[::1] _undo_prefix, _undo_binding, _undo_element, in_force
    cdef long long[::1] _tags
    cdef long long _tag

    cdef begin(self, WireNames names, int declarations_max)
    cdef int announce(self, int binding) except -1
    cdef Py_ssize_t open(self, int element, ColumnWriter out) except -1
    cdef void close(self, int element) noexcept
    cdef _grow_undo(self, int count)
    cdef _grow_prefixes(self, int count)
