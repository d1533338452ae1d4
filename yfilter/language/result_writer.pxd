# The C types of result_writer.py.
cimport cython
from formats.subtree_writer cimport SubtreeWriter
from yfilter.language.result_plan cimport *

cdef int _CONTENT, _VALUES, _STRINGS, _DOCUMENTS, _ATTRIBUTES, _RAW, _IN_VALUES, _IN_TEXT
cdef int _NO_NAME, _ANY_NAME
cdef Py_ssize_t _WRITTEN_KEPT_MAX

@cython.final
cdef class ResultWriter:
    cdef readonly object stream
    cdef readonly object limits
    cdef readonly long long copied, made
    cdef SubtreeWriter _xml
    cdef ResultPlan _plan
    cdef long long _stamp
    cdef object _evaluator, _bindings
    cdef dict _names
    cdef bytes _message, _declared_always
    cdef dict _remembered, _results, _declared_by_scope
    cdef list _documents, _seen
    cdef long long _visits, _tuples, _bytes, _items
    cdef Py_ssize_t _settled, _kept
    cdef bint _after_atom, _is_empty
    cdef object _node_column, _slot_column, _copy_columns
    cdef int[::1] _nodes, _slots, _copied_at, _copied_size
    cdef int _top, _elements
    cdef bytearray _masks

    cpdef list results(self, ResultPlan plan, bindings)
    cpdef bytes whole_message(self)
    cdef list _planned(self, ResultPlan plan, bindings)
    cdef list _enclosed(self, ResultPlan plan, bindings)
    cdef object _asked(self, foreign)
    cdef int _begin(self, ResultPlan plan) except -1
    cdef int _number(self, test) except? -1
    cdef list _each(self, int row, int binding, bint again)
    cdef int _emit(self, int row, int mode) except -1
    cdef int _emit_parts(self, int row, int mode) except -1
    cdef int _emit_element(self, int row, int mode) except -1
    cdef int _emit_nodes(self, int row, int mode) except -1
    cdef int _emit_data(self, int row, int mode) except -1
    cdef int _emit_for(self, int row, int mode) except -1
    cdef int _emit_bindings(self, int row, int mode) except -1
    cdef list _names_of_attributes(self, int part, int last)
    cdef int _emit_text(self, int row, int mode) except -1
    cdef int _emit_part(self, int row, int mode) except -1
    cdef int _emit_foreign(self, int row, int mode) except -1
    cdef int _emit_attribute_nodes(self, int first) except -1
    cdef int _separate(self, int mode) except -1
    cdef int _put_atom(self, int row, int where) except -1
    cdef _put_first(self, int row, int path, int first, int where)
    cdef int _put_string_of(self, int kind, int node, int where) except -1
    cdef bytes _string_of(self, int kind, int node)
    cdef bytes _string(self, int row)
    cdef int _copy(self, int element, int context) except -1
    cdef _copy_into(self, int element, int context)
    cdef int _settle(self) except -1
    cdef int _spend(self) except -1
    cdef bint _holds(self, int row) except -1
    cdef bint _some_node(self, int row) except -1
    cdef int _path(self, int path) except -1
    cdef int _select(self, int axis, int number, int start) except -1
    cdef bint _accepts(self, int number, int name) noexcept
    cdef int _push(self, int node) except -1
    cdef int _filter(self, int step, int first) except -1
    cdef int _sort(self, int first) except -1
    cdef object _node(self, int slot, int kind)

cdef bint _compares(value, int operator, constant) except -1
