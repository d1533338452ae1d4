# The C types of binary_reader.py.
cimport cython
from formats.attribute_sets cimport AttributeSets
from formats.column_writer cimport ColumnWriter
from formats.element_stream cimport ElementStream
from formats.value_reader cimport ValueReader
from formats.wire_bytes cimport WireBytes
from formats.wire_model cimport WireModel
from formats.wire_names cimport WireNames
from formats.wire_scope cimport WireScope

cdef int AFTER, ATTRIBUTES, COMMENT, DECLARATION, ELEMENT, END, INSTRUCTION, TEXT, WITH_TEXT
cdef int XML_BINDING
cdef long long NUMBER_MAX
cdef int _NO_SET, _NAMES_KEPT_MAX
cdef list _IDLE

cpdef ElementStream read_binary(bytes form, Py_ssize_t at, WireModel model, limits)

@cython.final
cdef class BinaryReader:
    cdef WireBytes _source
    cdef ColumnWriter _out
    cdef ValueReader _values
    cdef AttributeSets _sets
    cdef WireScope _scope
    cdef WireModel _model
    cdef WireNames _names
    cdef object _limits
    cdef long long _message, _written, _expansion_max, _attributes_total_max
    cdef int _depth_max, _elements_max, _attributes_each_max, _names_max
    cdef Py_ssize_t _attributes_max, _contents_max
    cdef int _name_room
    cdef int[::1] _predicted, _set_of, _number_of, _open_name
    cdef long long[::1] _seen
    cdef Py_ssize_t _depth_room
    cdef list _names_used

    cpdef ElementStream read(self, bytes form, Py_ssize_t at, WireModel model, limits)
    cdef _set_limits(self, limits)
    cdef _read_head(self, limits)
    cdef _begin(self)
    cdef int _read_structure(self, Py_ssize_t bits, Py_ssize_t stop) except -1
    cdef int _check_end(self, Py_ssize_t bit, Py_ssize_t stop) except -1
    cdef int _start(self, int name, int element, int attribute_set) except -1
    cdef int _add_attributes(self, int attribute_set, int declared) except -1
    cdef int _meet(self, int name) except -1
    cdef _refuse_element(self, int element, int depth)
    cdef _refuse_prefix(self, int name)
    cdef _check_content(self, bytes values)
    cdef _reserve_depth(self, Py_ssize_t depth)
    cdef _grow_names(self, int count)
