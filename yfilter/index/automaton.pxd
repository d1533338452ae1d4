# The tables of the automaton, for candidates.pyx: fields, constants and methods.
cimport cython


cdef inline int edge_bit(int edge) noexcept nogil:
    return 1 << ((<unsigned long long>edge * 0x9E3779B1ULL >> 8 & 0xFFFFFF) % 31)


cdef class Sorter:
    cdef int[::1] _places
    cdef int[::1] _spare

    cdef int sort(self, int[::1] column, int count) except -1
    cdef int _pass(self, int[::1] source, int[::1] into, int count, int shift) noexcept


cdef class IntCache:
    cdef readonly long long[::1] _slots
    cdef long long[::1] _before
    cdef int _count
    cdef readonly int _shift
    cdef int _before_shift
    cdef int _shift_min
    cdef readonly unsigned long long _mask
    cdef unsigned long long _before_mask

    cdef inline int get(self, long long key) noexcept
    cdef int get_all(self, long long[::1] keys, int[::1] values, int count) noexcept
    cdef inline int recall(self, long long key) noexcept
    cdef int retire(self, long long key) except -1
    cdef int put(self, long long key, int value) except -1
    cdef int cover(self, int count) except -1
    cdef int _grow(self) except -1
    cpdef long long size_bytes(self)


cdef class Slots:
    cdef int[::1] _slots

    cdef unsigned long long home_of(self, int number) except? 0
    cdef int enter(self, int number) except -1
    cdef int leave(self, int number) except -1
    cdef int make_room(self, int count) except -1


cpdef enum:
    # Fields before a record.
    POOLED_LENGTH = -2
    POOLED_USERS = -1
    POOLED_BEFORE = 2


cdef class RecordPool(Slots):
    cdef public int[::1] words
    cdef int _used
    cdef readonly int count
    cdef dict _free
    cdef long long _free_words
    cdef long long _first_seed

    cdef int acquire(self, int[::1] numbers, int length) except -1
    cpdef bint release(self, int record) except -1
    cdef int _allocate(self, int length) except -1


cdef class SubscriberRuns:
    cdef int[::1] _first
    cdef int[::1] _runs
    cdef int _used
    cdef dict _free
    cdef int[::1] _places

    cpdef int add(self, int query, int registration) except -1
    cpdef int remove(self, int query, int registration) except -1
    cpdef list of(self, int query)
    cpdef object collect(self, int[::1] queries, int count)
    cdef int _moved(self, int place) except -1
    cdef int _take(self, int bits) except -1
    cdef int _give_up(self, int place, int bits) except -1


# The names of the numbers of residuals: see automaton.pxd.
cpdef enum:
    # A residual above 0: number << CODE_SHIFT | what it is | the depth of the element.
    CODE_DEPTH = 31
    CODE_ABSOLUTE = 32
    CODE_POSITION = 63
    CODE_TWIG = 64
    CODE_SHIFT = 7

    # Fields of a record; from RECORD_ROWS on its rows, or where each step is.
    RECORD_MODE = 0
    RECORD_REQUIRED = 1
    RECORD_COUNT = 2
    RECORD_ROWS = 3

    # Modes of records.
    MODE_FIXED = 0
    MODE_ON_PATH = 1
    MODE_BELOW = 2

    # A requirement: a number << REQUIRED_SHIFT, an atom's | REQUIRED_ATOM.
    REQUIRED_ATOM = 1
    REQUIRED_SHIFT = 1

    # Fields of a row of MODE_FIXED.
    FIXED_POSITION = 0
    FIXED_CHECK = 1
    FIXED_WIDTH = 4

    # Where an element is: steps up << POSITION_SHIFT, or a depth | POSITION_ABSOLUTE.
    POSITION_UNKNOWN = -1
    POSITION_ABSOLUTE = 1
    POSITION_SHIFT = 1

    # Fields of a step of a way; from WAY_CHECKS on its checks.
    WAY_DESCENDANT = 0
    WAY_SYMBOL = 1
    WAY_COUNT = 2
    WAY_CHECKS = 3

    # Fields of a check.
    CHECK_KIND = 0
    CHECK_A = 1
    CHECK_B = 2
    CHECK_WIDTH = 3

    # Kinds of checks, after the operators of ranges (see AtomTable).
    CHECK_ATOM = 5
    CHECK_EXISTS = 6
    CHECK_DIFFERS = 7
    CHECK_NESTED = 8
    CHECK_ANYWHERE = 9
    CHECK_TWIG = 10
    CHECK_VERIFIED = 11

    # What is added to the kind of a check, a condition of the draft or a recipe.
    CHECK_COLUMN = 16
    CHECK_NOT = 32
    CHECK_OF_ELEMENT = 15  # the kind itself


cdef struct AtomRow:  # see AtomTable
    int attribute
    int hash
    int place
    int length
    int users
    int first_edge
    int edges
    int seen


cpdef enum:
    # Other code counts on atoms fitting into as many bits.
    ATOM_BITS = 24

    # Operators of ranges; 0 is that of equalities.
    LESS = 1
    AT_MOST = 2
    GREATER = 3
    AT_LEAST = 4
    RANGES = 4

    # The first byte of the keys of text tests, and of equalities with numbers: no text has it.
    TEXT_TEST = 0xFE
    NUMBER_KEY = 0xFF

    # Kinds of text tests.
    CONTAINS = 1
    STARTS_WITH = 2
    ENDS_WITH = 3
    MATCHES = 4
    SPACED = 4  # and one of words.Spacing: in a text that is spaced so
    CASELESS = 8
    INTEGER = 16  # of the number that a column is
    PROGRAM = 17  # of the text that it is
    PRESENT = 18  # of the attribute, whatever its value
    PLACE = 19  # of the place that it is


@cython.final
cdef class AtomTable:
    cdef AtomRow* atoms
    cdef readonly int[::1] rows
    cdef public unsigned char[::1] octets
    cdef public int[::1] length_max
    cdef public int[::1] equalities
    cdef public int[::1] number_equalities
    cdef public int[::1] tests
    cdef public object text_tests
    cdef public int[::1] ranges
    cdef public int[::1] range_counts
    cdef public double[::1] numbers
    cdef long long[::1] _slots
    cdef int _bound
    cdef int _count
    cdef int _octets_used
    cdef int _octets_free
    cdef list _free_atoms
    cdef dict _free_octets
    cdef dict _number_of
    cdef list _number_users
    cdef list _free_numbers
    cdef unsigned long long _seed

    cdef int _touched
    cdef double[::1] _double
    cdef bytearray _key_bytes
    cdef const unsigned char* _key
    cdef int[::1] _which
    cdef unsigned int[::1] _slot
    cdef unsigned int[::1] _hash

    cdef int find_all(
        self, const unsigned char* values, int[::1] attributes, const int[::1] offsets, int count,
        int[::1] found
    ) except -1
    cdef int find(
        self, int attribute, const unsigned char* values, int first, int last
    ) noexcept
    cdef int find_number(self, int attribute, double number) noexcept
    cdef int _find_from(
        self, unsigned int slot, int attribute, const unsigned char* values, int first, int last,
        unsigned int hashed
    ) noexcept
    cpdef int acquire(self, int attribute, bytes value) except -1
    cpdef int acquire_range(self, int attribute, int operator) except -1
    cpdef int release(self, int atom) except -1
    cpdef int acquire_number(self, double value) except -1
    cpdef int release_number(self, int number) except -1
    cpdef int cover(self, int attribute) except -1
    cpdef int constants(self, int attribute) except -1
    cdef int users_of(self, int attribute, bytes value) except -1
    cpdef bint is_range(self, int atom) except -1
    cdef int _place_for(self, int length) except -1
    cdef int _cover_rows(self, int count) except -1
    cdef int _new_atom(self) except -1
    cdef int _rehash(self, int capacity) except -1
    cdef int _unlink(self, int atom) except -1


cdef struct TrieNode:  # see Trie
    int parent
    int edge
    int loop
    int first_query
    int uses
    int changed
    int next
    int previous
    int names
    int edges


cdef struct TrieQuery:  # see Trie
    int node
    int next
    int previous
    int residual
    int number


cpdef enum:
    ROOTS = 6

    # An edge: a number << EDGE_SHIFT | its kind; EDGE_LOOP is alone of its kind.
    EDGE_NAME = 0
    EDGE_LOOP = 1
    EDGE_ATTRIBUTE = 2
    EDGE_ATOM = 3
    EDGE_KIND = 3
    EDGE_SHIFT = 2

    # The entry of the log where no edge was made.
    LOG_QUERIES = -1
    LOG_REUSED = -2
    LOG_SIZE = 4096
    LOG_MASK = 4095


cdef class Trie(Slots):
    cdef TrieNode* nodes
    cdef TrieQuery* queries
    cdef readonly int[::1] node_rows, query_rows
    cdef int[::1] alias
    cdef public int[::1] log_node
    cdef public int[::1] log_edge
    cdef public int[::1] log_before
    cdef public int clock
    cdef unsigned long long[::1] _recent
    cdef int _recent_since
    cdef int _node_bound
    cdef readonly int node_count
    cdef int _first_free
    cdef int _last_free
    cdef int _query_bound
    cdef readonly int query_count
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
    cdef int _cover_nodes(self, int count) except -1
    cdef int _cover_queries(self, int count) except -1
    cdef list queries_behind(self, int edge)
    cdef list queries_below(self, int[::1] nodes)
    cdef bint _is_known(self, int node) noexcept
    cdef int _prune(self, int node) except -1
    cdef int _new_node(self, int parent, int edge) except -1
    cdef int _note(self, int node, int edge) except -1
    cdef int _link_edge(self, int node, int atom) except -1
    cdef int _unlink_edge(self, int node, int atom) except -1


cpdef enum:
    ANY_SYMBOL = 0
    ELSEWHERE = 0

    # Values of an element that are no attribute, and where the numbers of attributes begin.
    TEXT_NODE = 1
    STRING_VALUE = 2
    ATTRIBUTES = 3

    # Of a symbol with more labels than one.
    SEVERAL = -1

    # Fields of what is known of a name by its address.
    KNOWN_ADDRESS = 0
    KNOWN_MEANING = 1
    KNOWN_WIDTH = 2


cdef class Numbers:
    cdef readonly dict of
    cdef int[::1] _users
    cdef list _keys
    cdef list _free

    cdef int acquire(self, object key) except? -1
    cdef int retain(self, int number) noexcept
    cdef bint release(self, int number) except -1


cdef class SymbolTable:
    cdef public int[::1] exact
    cdef public int[::1] in_namespace
    cdef public int[::1] any_namespace
    cdef public int[::1] label_bits
    cdef public int[::1] only_label
    cdef public int[::1] seen
    cdef public int[::1] label
    cdef public int[::1] attribute
    cdef public int[::1] first
    cdef readonly Numbers symbols
    cdef readonly Numbers attributes
    cdef readonly dict labels
    cdef dict _labels_of
    cdef int _next_label
    cdef dict _remembered
    cdef unsigned long long[::1] _slots
    cdef list _slot_names

    cpdef int translate(self, list names) except -1
    cdef int _learn(self, name, int slot, unsigned long long address) except -1
    cpdef int acquire(self, object test) except -1
    cdef int retain(self, int symbol) noexcept
    cpdef int release(self, int symbol) except -1
    cpdef int acquire_attribute(self, object test) except -1
    cdef int retain_attribute(self, int attribute) noexcept
    cpdef int release_attribute(self, int attribute) except -1


cdef class TextTests:
    cdef Trie _trie
    cdef dict _queries
    cdef dict _patterns, _sets
    cdef int _last_set
    cdef set _wanted
    cdef public object integers
    cdef dict _programs, _places
    cdef public long long cost
    cdef bint gave_up
    cdef int[::1] found
    cdef int[::1] _seen
    cdef unsigned char[::1] _spaced
    cdef int _count, _search

    cpdef int add(self, int attribute, bytes key, int atom) except -1
    cdef int _write(self, int attribute, int kind, bytes text, int test, int number) except -1
    cdef int _add_pattern(self, int attribute, bytes key, int atom) except -1
    cpdef int remove(self, int attribute, bytes key) except -1
    cdef int find(self, int attribute, bytes values, int first, int last) except -1
    cdef int _space(self, const unsigned char* data, int first, int last, int spacing) except -2
    cdef int _walk(
        self, int root, const unsigned char* data, int first, int last, bint at_words
    ) except -1
    cdef int _emit(self, int atom) except -1


cdef class NodeSet:
    cdef Trie trie
    cdef int[::1] nodes
    cdef int[::1] loops
    cdef int[::1] _parents
    cdef int[::1] _children
    cdef Sorter _sorter
    cdef int count
    cdef int loop_count

    cdef void clear(self) noexcept
    cdef int push(self, int node) except -1
    cdef int choose_parents(
        self, int[::1] members, int[::1] bits_of, int first, int count, int bits
    ) except -1
    cdef int push_children(self, int count, int edge) except -1
    cdef int close(self) except -1


cdef struct LoopsRow:  # see LoopSets
    int first
    int count
    int names
    int time
    int changed
    int twin
    int[2] spare  # half a cache line


cdef class LoopSets:
    cdef Trie trie
    cdef LoopSets older
    cdef LoopsRow* sets
    cdef int[::1] _set_rows
    cdef int[::1] members
    cdef int[::1] names
    cdef IntCache _numbers
    cdef int[::1] _merged
    cdef int[::1] _merged_names
    cdef int _bound
    cdef int _used

    cdef int union(self, int loops, int[::1] nodes, int first, int count) except -1
    cdef int carry(self, LoopSets older, int loops) except -1
    cdef int last_change(self, int loops) except -1
    cdef long long used_bytes(self) noexcept
    cdef int _intern(self, int count, int change) except -1
    cdef int _find(self, int[::1] nodes, int count, long long key) noexcept
    cdef int _derive(self, int loops) except -1


cdef struct StateRow:  # see StateTable
    int row
    int accepts
    int flags
    int time
    int first
    int count
    int twin
    int elsewhere
    int names
    int edges
    int loops
    int leans_on
    int differing_names
    int differing_edges
    int row_then
    int time_then


cpdef enum:
    # The flags of a state; from FLAG_ASKED on one of FLAGS_ASKED for each edge.
    FLAG_FOLLOWS = 1
    FLAG_ATTRIBUTES = 2
    FLAG_ASKED = 4
    FLAGS_ASKED = 29

    # The accepted list, or the other target, of a state before the first request.
    NOT_YET = -1


cdef class StateTable:
    cdef Trie trie
    cdef int[::1] only_label
    cdef readonly int[::1] label_bits
    cdef StateRow* states
    cdef readonly int[::1] state_rows
    cdef int[::1] members
    cdef int[::1] member_names
    cdef int[::1] member_edges
    cdef LoopSets loops
    cdef readonly IntCache transitions
    cdef int bound
    cdef int next_row
    cdef int _members_used
    cdef int[::1] _common
    cdef int _touched

    cdef int look_at(self, SymbolTable symbols) except -1
    cdef int append(self, int loops, int[::1] nodes, int count) except -1
    cdef int touch_states(self, int[::1] states, int count) except -1
    cdef int outdated(self, int state) except -1
    cdef int lean(self, int state, int other) except -1
    cdef bint leans(self, int state) noexcept
    cdef bint may_differ(self, int state, int edge) noexcept
    cdef long long key(self, int state, int edge) noexcept
    cdef long long table_bytes(self) noexcept
    cdef int _derive(self, int state) except -1
    cdef int _compare(self, int state, int other) except -1
    cdef int _compare_loops(self, int state, int other) except -1
    cdef int _put_loops_right(self, int state) except -1
    cdef int _put_right(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1
    cdef int _put_right_of_many(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1
    cdef int _note_bits(self, int place) except -1
    cdef int _heed(self, int state, int change, bint own) except -1
    cdef int _forget_name(self, int state, int symbol) except -1
    cdef int _forget(self, int state, int edge) except -1


@cython.final
cdef class SecondAccess:
    cdef readonly int groups
    cdef readonly int[::1] group_of
    cdef readonly int[::1] position
    cdef readonly int[::1] symbol
    cdef readonly int[::1] attribute
    cdef readonly int[::1] operator
    cdef readonly int[::1] template
    cdef readonly int[::1] size
    cdef readonly int[::1] members
    cdef readonly double[::1] numbers
    cdef RecordPool _records
    cdef AtomTable _atoms
    cdef int[::1] _number_of
    cdef int[::1] _template_of
    cdef int[::1] _in_order
    cdef int[::1] _end
    cdef int[::1] _last
    cdef int[::1] _changes
    cdef dict _known
    cdef int _group, _best, _best_number
    cdef bint _is_counting
    cdef int _depth, _best_depth
    cdef int[::1] _records_down
    cdef int[::1] _places_down
    cdef int[::1] _best_records
    cdef int[::1] _best_places
    cdef RecordPool _templates
    cdef int _last_template, _made, _different
    cdef int[::1] _key

    cdef int divide(self, int[::1] queries, int count, TrieQuery* rows) except -1
    cdef int collect(self, int group) except -1
    cdef int _part_alike(self, int count) except -1
    cdef int _made_template(self) except -1
    cdef int _begin(self, int count) except -1
    cdef int _read(self, int record) except -1
    cdef int _read_way(self, int record, int position, bint is_below) except -1
    cdef int _read_check(self, int place, int position, int symbol) except -1
    cdef int _meet(self, int place, int position, int symbol) except -1
    cdef int _find_group(
        self, int position, int symbol, int attribute, int operator, int template
    ) except -1
    cdef int _grow(self, int room) except -1


cpdef enum:
    # Fields of a list; from LIST_QUERIES on the queries.
    LIST_EPOCH = 0
    LIST_SURE = 1
    LIST_QUICK = 2
    LIST_SLOW = 3
    LIST_GROUPS = 4
    LIST_SECONDS = 5
    LIST_QUICK_FOUND = 6
    LIST_SLOW_FOUND = 7
    LIST_QUERIES = 8

    # Other fields of a ranged list, of which LIST_SLOW is RANGED.
    LIST_RANGED = 1
    LIST_BOUNDS = 2
    RANGED = -1
    FAR_ROWS = 16  # of a ranged list, which have a farthest bound in common

    # Fields of a group; from GROUP_QUERIES on its queries.
    GROUP_POSITION = 0
    GROUP_COUNT = 1
    GROUP_EPOCH = 2
    GROUP_ELEMENT = 3
    GROUP_QUERIES = 4

    # Fields of a second; from SECOND_QUERIES on its queries.
    SECOND_POSITION = 0
    SECOND_SYMBOL = 1
    SECOND_ATTRIBUTE = 2
    SECOND_OPERATOR = 3
    SECOND_COUNT = 4
    SECOND_BOUNDS = 5
    SECOND_ALIKE = 6
    SECOND_QUERIES = 7

    # Fields of a query in a list; in a group it has a twig for the residual.
    LISTED_QUERY = 0
    LISTED_RESIDUAL = 1
    LISTED_TWIG = 1
    LISTED_REQUIRED = 2
    QUICK_WIDTH = 2
    SLOW_WIDTH = 3
    GROUPED_WIDTH = 2

    # Sections of a list while it is laid out; from SECTION_GROUPS to SECTION_SECONDS one a
    # position.
    SECTION_SURE = 0
    SECTION_QUICK = 1
    SECTION_SLOW = 2
    SECTION_GROUPS = 3
    SECTION_SECONDS = 67
    SECTIONS = 68


cdef class AcceptLists:
    cdef Trie trie
    cdef AtomTable atoms
    cdef RecordPool records
    cdef readonly int[::1] lists
    cdef readonly double[::1] bounds
    cdef int _lists_used
    cdef int _bounds_used
    cdef int[::1] _next
    cdef double[::1] _numbers
    cdef int[::1] _queries
    cdef SecondAccess _second

    cdef int make(self, int[::1] members, int first, int count) except -1
    cdef int make_range(self, int[::1] members, int first, int count) except -1
    cdef int copy(self, AcceptLists older, int source) except -1
    cdef long long used_bytes(self) noexcept
    cdef int _gather(self, int[::1] members, int first, int count) except -1
    cdef int _cover(self, int room) except -1
    cdef int _lay_out(self) except -1
    cdef int _divide(self, int found) except -1
    cdef int _write_seconds(self) except -1
    cdef int _write_row(self, int at, int query) except -1
    cdef int _keep_bounds(self, double[::1] numbers, int first, int count) except -1
    cdef int _put_farthest(self, int count) except -1
    cdef double _farthest(self, int query, AtomRow atom) except? -1
    cdef int _write(self, int query, int residual) except -1
    cdef int _reserve(self, int count) except -1


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


cdef class LazyStates(StateTable):
    cdef LazyStates older
    cdef readonly AcceptLists accepts
    cdef IntCache _sets
    cdef Steps _steps
    cdef NodeSet _set
    cdef int _leaning_on
    cdef bint _differs
    cdef public long long bytes_max
    cdef public long long computed
    cdef public long long gone_through

    cdef int start(self, int root) except -1
    cdef int follow(self, int state, int edge) except -1
    cdef int elsewhere(self, int state) except -1
    cdef int fresh(self, int target, int state, int edge) except -1
    cdef int carry(self, LazyStates older, int state) except -1
    cdef int accepted(self, int state, bint ranged) except -1
    cpdef long long used_bytes(self)
    cdef bint is_full(self) noexcept
    cdef int _step(self, int state, int edge, int before) except -1
    cdef int _with_loops(self, int target, int state) except -1
    cdef int _computed_step(self, int state, int edge) except -1
    cdef int _other_step(self, int state, int edge) except? -1
    cdef int _carried_step(self, int state, int edge) except? -1
    cdef int _intern(self, int loops) except -1
    cdef int _find(self, int loops, NodeSet nodes, long long key) noexcept
    cdef int _twin(self, int loops, NodeSet nodes) except -1
    cdef int _new_state(self, int loops, long long key) except -1


@cython.final
cdef class Moves:
    cdef int count
    cdef long long[::1] key
    cdef int[::1] target
    cdef int[::1] state
    cdef int[::1] element
    cdef int[::1] item
    cdef int _touched
    cdef int _room

    cdef int cover(self, int room) except -1
    cdef int resolve(self, LazyStates states, int clock) except -1
    cdef int _edge(self, int i) noexcept
