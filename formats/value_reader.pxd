# The C types of value_reader.py.
cimport cython
from formats.wire_bytes cimport WireBytes
from formats.wire_model cimport WireModel

cdef long long NUMBER_MAX
cdef int _ROWS_KEPT_MAX, _BYTES_KEPT_MAX

@cython.final
cdef class ValueReader:
    cdef WireBytes _source
    cdef WireModel _model
    cdef readonly Py_ssize_t run
    cdef long long _written, _expansion_max
    cdef int _rows
    cdef int[::1] _literal_at, _literal_size, _value_at
    cdef bytearray _buffer
    cdef unsigned char[::1] _copy

    cdef begin(self, WireModel model, Py_ssize_t run, long long written, long long expansion_max)
    cdef bytes read(self, int count, int[::1] offsets)
    cdef int _refer(self, int value, int code, int literals) except -1
    cdef _check(self, bytes run, int literals)
    cdef _check_characters(self, bytes run, int literals)
    cdef bytes _copied(self, int count, int[::1] offsets)
    cdef void _copy_bytes(
        self, Py_ssize_t place, const unsigned char* source, Py_ssize_t at, Py_ssize_t size
    ) noexcept
    cdef _grow(self, int rows)
