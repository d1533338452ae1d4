from yfilter.index.atoms cimport *
from yfilter.index.trie cimport *


cdef class TextTests:
    cdef Trie _trie
    cdef dict _queries
    cdef dict _patterns
    cdef int[::1] found
    cdef int _count

    cpdef int add(self, int attribute, bytes key, int atom) except -1
    cpdef int remove(self, int attribute, bytes key) except -1
    cdef int find(self, int attribute, bytes values, int first, int last) except -1
    cdef int _emit(self, int atom) except -1
