# The C types of trie.py, and the names of its numbers.
from yfilter.index.atoms cimport *

cpdef enum:
    # Fields of a node.
    NODE_PARENT = 0
    NODE_EDGE = 1
    NODE_LOOP = 2
    NODE_FIRST_QUERY = 3
    NODE_USES = 4
    NODE_CHANGED = 5
    NODE_NEXT = 6
    NODE_PREVIOUS = 7
    NODE_NAMES = 8
    NODE_EDGES = 9
    NODE_WIDTH = 10

    # Fields of a query.
    QUERY_NODE = 0
    QUERY_NEXT = 1
    QUERY_PREVIOUS = 2
    QUERY_RESIDUAL = 3
    QUERY_NUMBER = 4
    QUERY_WIDTH = 5

    ROOTS = 6

    # An edge: a number << EDGE_SHIFT | its kind; EDGE_LOOP is alone of its kind.
    EDGE_NAME = 0
    EDGE_LOOP = 1
    EDGE_ATTRIBUTE = 2
    EDGE_ATOM = 3
    EDGE_KIND = 3
    EDGE_SHIFT = 2

    # What the log has for an edge where none was made.
    LOG_QUERIES = -1
    LOG_REUSED = -2
    LOG_SIZE = 4096
    LOG_MASK = 4095


cdef class Trie:
    cdef public int[::1] nodes
    cdef public int[::1] queries
    cdef int[::1] alias
    cdef public int[::1] log_node
    cdef public int[::1] log_edge
    cdef public int[::1] log_before
    cdef public int clock
    cdef unsigned long long[::1] _recent
    cdef int _recent_since
    cdef int[::1] _slots
    cdef int _node_bound
    cdef int _node_count
    cdef int _first_free
    cdef int _last_free
    cdef int _query_bound
    cdef int _query_count
    cdef int _free_query
    cdef AtomTable _atoms

    cdef int child(self, int node, int edge) noexcept
    cdef int child_of_all(self, int[::1] parents, int count, int edge, int[::1] found) noexcept
    cdef int next_changed(self, int[::1] column, int first, int end, int time) noexcept
    cpdef int extend(self, int node, int edge) except -1
    cpdef int loop_of(self, int node) except -1
    cpdef int add_query(self, int node, int residual, int number) except -1
    cdef int set_alias(self, int query, int other) except -1
    cpdef int answers(self, int query) except -1
    cpdef int remove_query(self, int query) except -1
    cdef bint _is_known(self, int node) noexcept
    cdef int _prune(self, int node) except -1
    cdef int _new_node(self, int parent, int edge) except -1
    cdef int _note(self, int node, int edge) except -1
    cdef int _link_edge(self, int node, int atom) except -1
    cdef int _unlink_edge(self, int node, int atom) except -1
    cdef int _insert(self, int node) except -1
    cdef int _delete(self, int node) except -1
    cdef int _rehash(self, int capacity) except -1
