# The C types of wire_model.py.
cimport cython
from formats.wire_head cimport WireHead
from formats.wire_names cimport WireNames
from formats.wire_words cimport WireWords

cdef int END, ELEMENT, TEXT
cdef int VALUE_BYTES_MAX, PROBES_MAX

@cython.final
cdef class WireModel:
    cdef readonly WireWords words
    cdef readonly dict set_numbers
    cdef dict _read, _written
    cdef readonly int set_count, value_count
    cdef int[::1] predicted
    cdef int[::1] expected_set, set_start, set_members
    cdef int[::1] value_start
    cdef bytes _values
    cdef const unsigned char* value_data
    cdef int[::1] _value_slots
    cdef unsigned int _value_mask

    cdef WireHead head_of(self, stream)
    cdef WireNames names_in(self, bytes head, Py_ssize_t offset, limits)
    cdef _make_room(self, dict kept, int names)
    cdef int expect(self, int[::1] predicted, int[::1] set_of, int count) noexcept
    cdef int find_value(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept
    cdef _set_predictions(self, grammar)
    cdef _set_attributes(self, grammar)
    cdef _set_values(self, values)

cpdef unsigned int value_hash(const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept
