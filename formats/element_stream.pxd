# The C types of element_stream.py; its columns stay objects, which everybody may look into.
cimport cython

@cython.final
@cython.no_gc
cdef class ElementStream:
    cdef public list names, declarations
    cdef public object element_name, element_parent, element_depth, element_end
    cdef public object attribute_start, attribute_name, attribute_offset
    cdef public object declaration_element
    cdef public object content_kind, content_parent, content_next, content_offset
    cdef public bytes attribute_values, content_values
    cdef public object pieces
