from yfilter.index.atoms cimport *
from yfilter.index.loop_sets cimport *
from yfilter.index.node_set cimport NodeSet
from yfilter.index.sorting cimport place_of
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.trie cimport *


cdef class Steps:
    cdef NodeSet found
    cdef Trie _trie
    cdef AtomTable _atoms
    cdef int[::1] _exact
    cdef int[::1] _in_namespace
    cdef int[::1] _any_namespace
    cdef int[::1] _label_bits

    cdef int by_loops(self, LoopSets loops, int number, int label) except -1
    cdef int by_name(
        self, int[::1] members, int[::1] names, int first, int count, int label
    ) except -1
    cdef int by_edge(
        self, int[::1] members, int[::1] edges, int first, int count, int edge
    ) except -1
