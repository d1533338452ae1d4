# The C types of readings.py: every message has one, and each of its classes of queries asks it.

cdef class Readings:
    cdef readonly object document
    cdef object _graph, _derive
