# The C types of need_walk.py.
cimport cython
from yfilter.projection.check_answers cimport CheckAnswers
from yfilter.projection.need_parts cimport Atom, Binding, Check, Disjunct
from yfilter.projection.need_states cimport NeedStates

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
    cdef public NeedStates states
    cdef public int[::1] state_of
    cdef public OpenBinding document
    cdef public list bound
    cdef object _table, _asked, _groups
    cdef CheckAnswers _answers
    cdef long long _visits
    cdef int _pending
    cdef list _stack
    cdef const int[::1] _element_name, _element_parent, _element_end

    cpdef bint walk(self, object stream, object asked) except -1
    cdef _begin(self, object stream, int elements)
    cdef int _walk(self, int elements) except -1
    cdef int _closing(self, int elements) except -1
    cdef int _look(self, int element, object content) except -1
    cdef bint _is_whole(self, OpenBinding opened) except -1
    cdef int _enter(self, OpenBinding opened) except -1
    cdef _leave(self, OpenBinding opened)
    cdef int _is_pending(self, OpenBinding opened) except -1
    cdef OpenBinding _ask(self, Check check, int element, OpenBinding opened)
    cdef int _hold(self, Atom atom, OpenBinding opened) except -1
