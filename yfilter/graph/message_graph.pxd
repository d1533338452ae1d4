# The C types of message_graph.py, and the names of its numbers.
cimport cython
from yfilter.graph.triple_table cimport *

cpdef enum:
    # Fields of a term; TAG: the term of its language or datatype, NEXT: of the same bucket.
    TERM_KIND = 0
    TERM_FIRST = 1
    TERM_LAST = 2
    TERM_TAG = 3
    TERM_NEXT = 4
    TERM_WIDTH = 5

    # Kinds of terms.
    KIND_IRI = 1
    KIND_BLANK = 2
    KIND_STRING = 3
    KIND_TAGGED = 4
    KIND_TYPED = 5
    KIND_LANGUAGE = 6

    # What a name of the message is; those of properties follow.
    ROLE_NONE = 0
    ROLE_SUBJECT = 1
    ROLE_NAMED_SUBJECT = 2
    ROLE_OTHER_PROPERTY = 3
    ROLE_CLOSURE = 4
    ROLE_CLASS = 5
    ROLE_PROPERTY_ABOVE = 6
    ROLE_MEMBER = 7
    ROLE_IRI_SUBJECT = 8
    ROLE_BLANK = 9
    ROLE_GRAPH_IRI = 10
    ROLE_GRAPH_BLANK = 11
    ROLE_IRI_OBJECT = 12
    ROLE_STRING = 13
    ROLE_TEXT = 14
    ROLE_LANGUAGE = 15
    ROLE_LEXICAL = 16
    ROLE_DATATYPE = 17
    ROLE_PROPERTY_IRI = 18
    ROLE_OWN = 19
    ROLES = 20

    # No term of the message.
    ABSENT_TERM = -1


@cython.final
cdef class MessageGraph:
    cdef readonly object stream
    cdef readonly bytes values
    cdef readonly int term_count
    cdef readonly dict graphs
    cdef readonly TripleTable stated
    cdef readonly dict terms_kept
    cdef readonly dict values_kept
    cdef readonly dict written
    cdef readonly dict stores
    cdef TripleTable _classes
    cdef TripleTable _own_classes
    cdef TripleTable _above
    cdef int[::1] _terms
    cdef int[::1] _buckets
    cdef int _mask
    cdef int _bucket
    cdef unsigned long long _seed
    cdef int _graph
    cdef int _graph_before
    cdef int[::1] _role
    cdef const int[::1] _name
    cdef const int[::1] _end
    cdef const int[::1] _attribute_start
    cdef const int[::1] _attribute_name
    cdef const int[::1] _attribute_offset

    cpdef object term(self, int number)
    cpdef object key(self, int number)
    cpdef int find(self, term) except -2
    cpdef int find_key(self, key) except -2
    cpdef TripleTable classes(self)
    cpdef TripleTable own_classes(self)
    cpdef TripleTable above(self)
    cdef int _read_names(self) except -1
    cdef int _read(self) except -1
    cdef int _subject_of(self, int element) except -1
    cdef int _property_of(self, int element) except -1
    cdef int _object_of(self, int element) except -1
    cdef int _term_in(self, int element, int role, int kind, int tag) except -1
    cdef TripleTable _typed(self, bint own_only)
    cdef bint _has(self, int element, int role) noexcept
    cdef list _closures(self, int wanted)
    cdef int _intern(self, int kind, int tag, int first, int last) except -1
    cdef int _lookup(self, int kind, int tag, bytes data, int first, int last) noexcept
    cdef int _added(self, int kind, bytes data) except -1
    cdef object _made(self, int number)
