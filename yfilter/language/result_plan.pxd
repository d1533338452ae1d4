# The C types of result_plan.py, and the names of its numbers.
cimport cython

cpdef enum:
    # Fields of a row, a path, a step and a predicate.
    ROW_KIND = 0
    ROW_A = 1
    ROW_B = 2
    ROW_C = 3
    ROW_NEXT = 4
    ROW_WIDTH = 5

    PATH_SLOT = 0
    PATH_FIRST = 1
    PATH_LAST = 2
    PATH_KIND = 3
    PATH_WIDTH = 4

    STEP_AXIS = 0
    STEP_TEST = 1
    STEP_FIRST = 2
    STEP_LAST = 3
    STEP_WIDTH = 4

    PREDICATE_KIND = 0
    PREDICATE_A = 1
    PREDICATE_SLOT = 2
    PREDICATE_WIDTH = 3

    # Kinds of nodes.
    NODE_ELEMENT = 0
    NODE_ATTRIBUTE = 1
    NODE_TEXT = 2

    # Axes of steps.
    AXIS_CHILD = 0
    AXIS_BELOW = 1
    AXIS_ATTRIBUTE = 2
    AXIS_ATTRIBUTE_BELOW = 3
    AXIS_TEXT = 4
    AXIS_TEXT_BELOW = 5

    # Kinds of predicates.
    PREDICATE_POSITION = 0
    PREDICATE_LAST = 1
    PREDICATE_CONDITION = 2

    # Kinds of rows: what is written.
    ROW_STATIC = 0
    ROW_ATOM = 1
    ROW_NODES = 2
    ROW_STRING = 3
    ROW_DATA = 4
    ROW_COUNT = 5
    ROW_NAME = 6
    ROW_CONCAT = 7
    ROW_CALL = 8
    ROW_TRUTH = 9
    ROW_ITEMS = 10
    ROW_IF = 11
    ROW_FOR = 12
    ROW_ELEMENT = 13
    ROW_ATTRIBUTE = 14
    ROW_TEXT = 15
    ROW_PART = 16
    ROW_FOREIGN = 17
    ROW_EACH = 18

    # Kinds of rows: conditions.
    ROW_CONSTANT = 20
    ROW_EXISTS = 21
    ROW_NOT = 22
    ROW_AND = 23
    ROW_OR = 24
    ROW_STRINGS = 25
    ROW_NUMBERS = 26
    ROW_COUNTED = 27
    ROW_COMPARED = 28
    ROW_CONTAINS = 29
    ROW_STARTS = 30
    ROW_ENDS = 31
    ROW_FOREIGN_TRUTH = 32

    # Comparisons.
    IS_EQ = 0
    IS_NE = 1
    IS_LT = 2
    IS_LE = 3
    IS_GT = 4
    IS_GE = 5

@cython.final
cdef class ResultPlan:
    cdef public object profile
    cdef public bint binds, is_message, repeats
    cdef public int each, around
    cdef public tuple tests, texts, constants, foreign, contexts
    cdef public int slots
    cdef object _row_column, _path_column, _step_column, _predicate_column, _number_column
    cdef const int[::1] rows, paths, steps, predicates
    cdef int[::1] numbers
    cdef public long long stamp
