# The C types of projector.py.
cimport cython
from formats.stream_selection cimport StreamSelection
from yfilter.projection.check_answers cimport CheckAnswers
from yfilter.projection.need_parts cimport Atom, Binding, Check, Disjunct
from yfilter.projection.need_states cimport NeedStates

cdef int VISITS_MAX, LINKS_AT_ONCE, _NODE, _ATTRIBUTE, _VALUE, _SUBTREE, _PART, _TAG_BYTES
cdef object _WORD

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
cdef class Projector:
    cdef public object table
    cdef NeedStates _states
    cdef CheckAnswers _answers
    cdef StreamSelection _selection
    cdef int[::1] _state_of, _settled, _heads, _tails, _taken, _taken_kind, _taken_next
    cdef unsigned long long[::1] _kept, _values, _classes
    cdef unsigned long long _word
    cdef long long _messages, _links_asked, _written, _elements, _elements_kept, _over_limit, _visits
    cdef int _pending, _settled_count, _taken_count
    cdef Py_ssize_t _class_count, _shift
    cdef double _whole_share
    cdef object _asked, _groups
    cdef OpenBinding _document
    cdef list _bound, _stack, _parts
    cdef dict _words
    cdef const int[::1] _element_name, _element_parent, _element_end
    cdef const int[::1] _attribute_start, _attribute_name

    cpdef object project(self, object stream, object asked)
    cdef bint _decide(self, object stream) except -1
    cdef _project(self, object stream, object word, Py_ssize_t shift, object left)
    cdef object _selected(self, Py_ssize_t place, double whole)
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
    cdef int _keep(self, int elements) except -1
    cdef unsigned long long _word_of(self, object groups) except? 0
    cdef _keep_of_document(self)
    cdef _mark(self, int element, int kind, object test, unsigned long long links)
    cdef int _close(self, int elements) noexcept
    cdef int _settle(self, int elements) except -1
    cdef _settle_touched(self, int element)
    cdef int _split(self, unsigned long long links) noexcept
    cdef int _distribute(self) except -1
    cdef int _take(self, Py_ssize_t place, int element, int kind) except -1
