# The C types of value_writer.py.
cimport cython
from formats.wire_model cimport WireModel, value_hash

cdef int PROBES_MAX, _LITERAL_BYTES_MAX, _ROWS_KEPT_MAX

@cython.final
cdef class ValueWriter:
    cdef long long _generation
    cdef Py_ssize_t _rows, _code
    cdef unsigned int _mask
    cdef int[::1] _literal_at, _literal_size, _slot_literal
    cdef long long[::1] _slot_generation
    cdef bytearray _code_buffer, _run_buffer
    cdef unsigned char[::1] _codes, _run

    cdef tuple write(self, WireModel model, ends, bytes values)
    cdef int _find_literal(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size, int next_literal
    ) noexcept
    cdef void _put(self, long long number) noexcept
    cdef _grow(self, Py_ssize_t rows)
