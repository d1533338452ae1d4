# Operators, for other extensions: see operators.pyx.
from yfilter.index.automaton cimport SymbolTable

cdef extern from *:
    """
    #define KINDS 4294967296LL
    #define CONTENT 2147483648LL
    #define ROOT (-KINDS)
    """
    const long long KINDS, CONTENT, ROOT


cdef inline int _position(long long node) noexcept:
    """The element that a node is, belongs to or stands in front of; -1 for the document."""
    return (node + CONTENT) >> 32


cdef inline long long _within(long long node) noexcept:
    """0 for an element or the document, 1 + its number for an attribute, < 0 for content."""
    return node - KINDS * _position(node)


cdef double number_in(const unsigned char* values, int first, int last) except? -1


cdef class TreeColumns:
    cdef readonly int number
    cdef int element, content  # the row in front of its elements, and its first content
    cdef int elements, attributes, contents  # rows here less rows of its stream
    cdef long long top
    cdef bytes attribute_values, content_values, text_values


cdef class MessageColumns:
    cdef object _stream
    cdef readonly int elements
    cdef int attributes, contents
    cdef list names
    cdef int deepest
    cdef const int[::1] name
    cdef const int[::1] parent
    cdef const int[::1] depth
    cdef const int[::1] end
    cdef const int[::1] attribute_start
    cdef const int[::1] attribute_name
    cdef const int[::1] attribute_offset
    cdef bytes attribute_values
    cdef const unsigned char[::1] content_kind
    cdef const int[::1] content_parent
    cdef const int[::1] content_next
    cdef const int[::1] content_offset
    cdef bytes content_values
    cdef readonly int[::1] text_first
    cdef readonly int[::1] text_next
    cdef readonly int[::1] within_first
    cdef readonly int[::1] within_last
    cdef readonly bint only_text
    cdef bytes text_values
    cdef const int[::1] text_offset
    cdef list _trees  # TreeColumns, in the order of their rows
    cdef int _elements_used, _attributes_used, _contents_used
    cdef dict _numbers_of_names

    cpdef int bind_columns(self, stream) except -1
    cdef int drop_trees(self) except -1
    cdef bint add_tree(self, stream, top) except -1
    cdef TreeColumns tree_of(self, long long node)
    cdef int _name(self, name) except -1
    cdef int _put_rows(self, TreeColumns tree, stream, int first, int end) except -1
    cdef int _make_room(self) except -1
    cdef bint _link_contents(self, int first, int end, int content, int last) except -1


cdef class Variable:
    cdef public long long node

    cdef object held(self)
    cdef int hold(self, held) except -1


cdef class Scratch:
    cdef MessageColumns columns
    cdef SymbolTable symbols
    cdef readonly int message
    cdef int[::1] label
    cdef int[::1] exact
    cdef int[::1] in_namespace
    cdef int[::1] any_namespace
    cdef long long[::1] nodes
    cdef int top
    cdef readonly long long visits
    cdef public long long visits_max
    cdef long long clock_at
    cdef double began, _looked
    cdef long long _step
    cdef bytes octets
    cdef int first
    cdef int last
    cdef bint is_untyped
    cdef public int position  # of the context node, and how many there are
    cdef public int size
    cdef readonly Variable binding
    cdef object _limits
    cdef object _evaluator
    cdef bint _is_spent
    cdef long long _tuples_left, _tuples_max
    cdef public bint strict  # errors are raised, whatever could go on without them

    cdef bint accepts(self, int symbol, int name) noexcept
    cdef bint passes(self, int test, int symbol, long long node) noexcept
    cdef long long parent(self, long long node) except -2
    cdef long long root(self, long long node) except -2
    cdef long long behind(self, long long node) noexcept
    cdef int visit(self, long long count) except -1
    cpdef int restart(self, long long spent=*) except -1
    cdef int build(self, long long count) except -1
    cdef int bind_tuple(self) except -1
    cdef int _look(self) except -1
    cdef int push(self, long long node) except -1
    cdef int turn(self, int base) except -1
    cdef int tidy(self, int base) except -1
    cdef int look_at(self, long long node) except -1
    cdef int look_at_octets(self, bytes octets) except -1
    cdef int _behind_target(self, int first, int last) except -1
    cdef str text(self, long long node)
    cdef double number(self) except? -1
    cdef object atom(self, long long node)
    cdef str target(self, long long node)
    cdef int _adopt(self, int trees) except -1
    cdef object node_of(self, long long node)
    cdef object nodes_from(self, int base)
    cdef long long[::1] taken(self, int base)
    cpdef object evaluator(self)


cpdef enum:
    # Which items of a value count: of a general comparison, a value comparison, a text function.
    EACH_ITEM = 0
    ONLY_ITEM = 1
    FIRST_ITEM = 2
    # Each as a moment of this type.
    EACH_DATE = 3
    EACH_DATE_TIME = 4
    # One number of all items, infinity where there is none; a value that is no number does not
    # count, or, of all, is beyond all numbers on the other side.
    GREATEST_ITEM = 5
    LEAST_ITEM = 6
    GREATEST_OF_ALL = 7
    LEAST_OF_ALL = 8


cdef class Output:
    cdef int put_items(self, value) except -1
    cdef int put_nodes(self, int base) except -1
    cdef int open_string(self) except -1
    cdef int put_octets(self, bytes octets, int first, int last) except -1
    cdef int attempt(self, Operator operand, long long node) except -1


cdef class Keys:
    cdef Scratch _scratch
    cdef int count, has
    cdef int[::1] kind
    cdef long long[::1] _first  # octet of a text; of another value its place in ``_atoms``
    cdef long long[::1] _size  # of a text, in octets
    cdef double[::1] _number
    cdef unsigned char[::1] _octets
    cdef long long _used
    cdef list _atoms
    cdef dict _known

    cdef int clear(self) except -1
    cdef int _room(self, int kind) except -1
    cdef int put_text(
        self, const unsigned char* values, long long size, bint is_untyped
    ) except -1
    cdef int put_value(self, Scratch scratch) except -1
    cdef int put_number(self, double number) except -1
    cdef int put_atom(self, atom) except -1
    cdef int put_missing(self) except -1
    cdef object atom(self, int at)
    cdef double as_number(self, int at) except? -1
    cdef unsigned int hashed(self, int at) noexcept
    cdef bint is_same(self, int at, Keys others, int other) noexcept
    cdef int sign(self, int one, int other, bint missing_greatest) except -2


cdef class Operator:
    cdef readonly Scratch scratch
    cdef readonly Operator operand
    cdef Operator other
    cdef tuple parts
    cdef public bint is_costly
    cdef public bint uses_context
    cdef public bint is_double
    cdef public bint is_integer
    cdef public bint is_number
    cdef readonly bint is_truth
    cdef public object free
    cdef bint holds(self, long long node) except -1
    cdef object items(self, long long node)
    cdef object value(self, long long node)
    cdef object atom(self, long long node)
    cdef object first_atom(self, long long node)
    cdef object text(self, long long node)
    cdef bint number(self, long long node, double* found) except -1
    cdef int put_keys(self, long long node, Keys keys) except -1
    cdef int write(self, long long node, Output out) except -1


cdef class OperatorTable:
    cdef public Scratch scratch
    cdef object _compiler
    cdef list _operators
    cdef list _entries
    cdef dict _numbers
    cdef list _free
    cdef object _stream
    cdef bint _is_new
    cdef dict _answers
    cdef dict _selected
    cdef dict _columns
    cdef dict _spent
    cdef dict _seconds
    cdef dict _why
    cdef dict _late
    cdef object _limits
    cdef public bint gave_up
    cdef public object exceeded
    cdef public long long over_limit
    cdef public long long visits
    cdef public long long nanos

    cdef int _count_user(self, int number, int change) except -1
    cpdef list elements(self, int number, int condition=*)
    cdef list _select(self, int number)
    cdef list _accepted(self, int number, list elements, Operator condition)
    cdef object _column(self, int number, list elements, Operator found_by)
    cdef int _look(self) except -1
    cdef bint _spend(self, Operator operator, int number, long long spent) except -1
    cdef bint holds(self, int number, int element) except -1
    cdef object compute(self, int number, int element, int items)
    cdef bint _is_spent(self, int number, long long spent) except -1
    cdef int _restart(self, int number, long long spent) except -1
