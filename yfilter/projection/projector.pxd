# The C types of projector.py.
cimport cython
from formats.stream_selection cimport StreamSelection
from yfilter.projection.check_answers cimport CheckAnswers
from yfilter.projection.need_parts cimport Atom, Binding, Check, Disjunct
from yfilter.projection.need_states cimport NeedStates

cdef int VISITS_MAX, WHOLES_BEFORE_REST, RESTS_MAX, _ALL_BELOW, _NODE, _ATTRIBUTE, _VALUE, _SUBTREE, _PART, _TAG_BYTES
cdef double WHOLE_SHARE

@cython.final
@cython.freelist(256)
cdef class OpenBinding:
    cdef public Binding binding
    cdef public int element, end
    cdef public OpenBinding outer
    cdef public object wanted, pending
    cdef public dict found

cdef OpenBinding _opened(Binding binding, int element, int end)

@cython.final
cdef class Projector:
    cdef public object table
    cdef public list parts
    cdef NeedStates _states
    cdef CheckAnswers _answers
    cdef StreamSelection _selection
    cdef int[::1] _state_of
    cdef long long _messages, _whole, _elements, _elements_kept, _over_limit, _visits, _rested
    cdef int _pending, _kept, _wholes, _rest
    cdef double _whole_share
    cdef OpenBinding _document
    cdef list _bound, _stack
    cdef const int[::1] _element_name, _element_parent, _element_end
    cdef const int[::1] _attribute_start, _attribute_name

    cpdef object project(self, object stream)
    cpdef StreamSelection decide(self, object stream)
    cdef object _project(self, object stream)
    cdef _begin(self, object stream, int elements)
    cdef int _walk(self, int elements) except -1
    cdef int _closing(self, int elements) except -1
    cdef int _look(self, int element, object content) except -1
    cdef int _enter(self, OpenBinding opened) except -1
    cdef _leave(self, OpenBinding opened)
    cdef int _is_pending(self, OpenBinding opened) except -1
    cdef OpenBinding _ask(self, Check check, int element, OpenBinding opened)
    cdef int _hold(self, Atom atom, OpenBinding opened) except -1
    cdef int _keep(self, int elements) except -1
    cdef _keep_of_document(self)
    cdef _mark(self, int element, int kind, object test)
    cdef int _close(self, int elements) noexcept
    cdef int _settle(self, int elements) except -1
