# The C types of result_writer.py.
cimport cython
from formats.subtree_writer cimport SubtreeWriter
from yfilter.language.plan_values cimport PlanValues
from yfilter.language.result_plan cimport *

cdef int _CONTENT, _VALUES, _STRINGS, _DOCUMENTS, _ATTRIBUTES, _IN_VALUES, _IN_TEXT
cdef Py_ssize_t _WRITTEN_KEPT_MAX
cdef double _PLAN_SECONDS, _VISIT_SECONDS

@cython.final
cdef class ResultWriter(PlanValues):
    cdef readonly long long copied, made
    cdef readonly double seconds
    cdef bytes _message, _declared_always
    cdef dict _remembered, _results, _interpreted, _declared_by_scope
    cdef list _documents, _seen
    cdef object _bindings, _copy_columns
    cdef long long _items
    cdef Py_ssize_t _kept
    cdef bint _after_atom, _is_empty
    cdef int[::1] _copied_at, _copied_size

    cpdef list results(self, ResultPlan plan, bindings)
    cpdef bytes whole_message(self)
    cdef list _planned(self, ResultPlan plan, bindings)
    cdef list _enclosed(self, ResultPlan plan, bindings)
    cdef list _each(self, int row, int binding, bint again)
    cdef _forget(self)
    cdef int _emit(self, int row, int mode) except -1
    cdef int _emit_parts(self, int row, int mode) except -1
    cdef int _emit_element(self, int row, int mode) except -1
    cdef list _names_of_attributes(self, int part, int last)
    cdef int _emit_nodes(self, int row, int mode) except -1
    cdef int _emit_attribute_nodes(self, int first) except -1
    cdef int _emit_for(self, int row, int mode) except -1
    cdef int _emit_text(self, int row, int mode) except -1
    cdef int _emit_part(self, int row, int mode) except -1
    cdef int _emit_bindings(self, int row, int mode) except -1
    cdef int _emit_foreign(self, int row, int mode) except -1
    cdef int _separate(self, int mode) except -1
    cdef int _copy(self, int element, int context) except -1
    cdef _copy_into(self, int element, int context)
