# The names of the numbers of residuals: see residual_rows.py.
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

    # What is required: a number << REQUIRED_SHIFT, an atom's | REQUIRED_ATOM.
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

    # Kinds of checks, after the operators of ranges (see atoms.py).
    CHECK_ATOM = 5
    CHECK_EXISTS = 6
    CHECK_DIFFERS = 7
    CHECK_NESTED = 8
    CHECK_ANYWHERE = 9
    CHECK_TWIG = 10
    CHECK_VERIFIED = 11
