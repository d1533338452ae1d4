"""Events and contexts of the binary forms, as numbers (docs/formats.md).

Events are the steps of a message in document order.  A context is the place between two steps:
what was started or ended last, and whether text came since then::

    <a>t<b/></a>    events     start a   text    start b   end          end     end
                    context  0       of a    of a+text   of b   after b    after a
"""

# Events; from ELEMENT on they are the start of the element with the name number event - ELEMENT.
END = 0
TEXT = 1
COMMENT = 2
INSTRUCTION = 3
ATTRIBUTES = 4  # which attributes the next element has, where that is not what is expected
DECLARATION = 5  # a namespace declaration of the next element
ELEMENT = 6

# Contexts: 0 is before the root element; of a name number they begin at 4 * (number + 1).
# within these four: of the name, or after it; in both, with text.
AFTER, WITH_TEXT = 2, 1

PROBES_MAX = 8  # looks into a hash table of values, for a writer to be quick whatever comes
NUMBER_MAX = 0x7FFFFFFF  # on the wire
