# The C types of wire_words.py.
cimport cython
from formats.name_table cimport NameTable

@cython.final
cdef class WireWords:
    cdef readonly object strings, names, known_names
    cdef readonly dict name_numbers, string_numbers
    cdef readonly int name_count
    cdef readonly NameTable name_table
