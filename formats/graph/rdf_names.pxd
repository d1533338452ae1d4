# The names of the numbers of rdf_names.py.

cpdef enum:
    # What an element is there for.
    PLAIN_ELEMENT = 1
    DESCRIPTION = 2
    LIST_ITEM = 3
    NO_ELEMENT = 4
    BARE_ELEMENT = 5
    # What an attribute is there for.
    IGNORED = 1
    PROPERTY_ATTRIBUTE = 2
    TYPE = 3
    ID = 4
    ABOUT = 5
    NODE_ID = 6
    RESOURCE = 7
    DATATYPE_OF = 8
    PARSE_TYPE = 9
    LANGUAGE_OF = 10
    BASE = 11
    NO_ATTRIBUTE = 12
    BARE_ATTRIBUTE = 13
