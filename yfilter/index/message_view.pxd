cimport cython
from yfilter.index.atoms cimport *
from yfilter.index.symbols cimport *
from yfilter.index.text_tests cimport TextTests
from yfilter.index.trie cimport *
from yfilter.operators.message_columns cimport MessageColumns


cdef double NAN

cdef double further(double one, double other, bint smallest) noexcept


@cython.final
cdef class MessageView(MessageColumns):
    cdef AtomTable atoms
    cdef TextTests _text_tests
    cdef readonly int names
    cdef readonly int[::1] position_start
    cdef readonly int[::1] positions
    cdef readonly int[::1] order
    cdef int[::1] _level_start
    cdef readonly int[::1] label
    cdef readonly int[::1] attribute
    cdef readonly int[::1] own_start
    cdef readonly int[::1] own_atom
    cdef readonly int[::1] own_asks
    cdef readonly int[::1] own_ranges
    cdef int _asking
    cdef readonly double[::1] own_number
    cdef readonly unsigned long long[::1] _signature
    cdef readonly unsigned long long[::1] _seen
    cdef readonly int _own_count

    cdef bint holds(self, int element, int atom) noexcept
    cdef bint has_atom(self, int atom) noexcept
    cdef bint exists(self, int element, int attribute) noexcept
    cdef bint differs(self, int element, int attribute, int atom) except -1
    cdef bint compares(self, int element, int attribute, int operator, double number) except -1
    cdef double number(self, int element, int attribute, bint smallest) except? -1
    cdef int[::1] _asked
    cdef int[::1] _text_asked
    cdef int[::1] _found
    cdef int[::1] _text_found

    cdef int _allocate(self, int elements, int contents, int attributes) except -1
    cdef int _find_values(self, bint texts) except -1
    cdef int _sort_by_depth(self) except -1
    cdef int _sort_by_name(self, int[::1] first) except -1
    cdef int _look_up_texts(self, int element, int place) except -1
    cdef bint _is_asked_for(self, int attribute) noexcept
    cdef int _find_atoms(self) except -1
    cdef bint _has_numbers(self, int attribute) noexcept
    cdef int _look_up_number(self, int element, int attribute, double number) except -1
    cdef int _look_up_string_value(self, int element) except -1
    cdef int _add_own(self, int element, int atom) except -1
    cdef int _new_own(self, bint has_edge) except -1
    cdef bint _is_value(self, int atom, bint content, int first, int last) noexcept
    cdef int _octet(self, bint content, int place) noexcept
