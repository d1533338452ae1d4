# The C types of need_walk.py.
cimport cython
from yfilter.index.locations cimport Locations
from yfilter.projection.need_parts cimport Atom, Binding, Disjunct, Place

cdef int VISITS_MAX

@cython.final
@cython.freelist(256)
cdef class OpenBinding:
    cdef public Binding binding
    cdef public int element, end
    cdef public OpenBinding outer
    cdef public object wanted, pending
    cdef public dict found

cdef OpenBinding _opened(Binding binding, int element, int end, object groups)

@cython.final
cdef class NeedWalk:
    cdef public int[::1] place_element
    cdef public OpenBinding document
    cdef public list bound, places
    cdef object _table, _index, _asked, _groups
    cdef Locations _hits
    cdef long long _visits
    cdef int _pending
    cdef list _stack
    cdef const int[::1] _element_end

    cpdef bint walk(self, object stream, object asked) except -1
    cdef int _walk(self, int elements) except -1
    cdef int _closing(self, int elements) except -1
    cdef int _look(self, int element, Place place) except -1
    cdef bint _is_whole(self, OpenBinding opened) except -1
    cdef int _enter(self, OpenBinding opened) except -1
    cdef _leave(self, OpenBinding opened)
    cdef int _ask(self, Atom atom, int element, int hit) except -1
    cdef int _hold(self, object disjuncts, OpenBinding opened) except -1
