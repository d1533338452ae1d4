"""Residuals as numbers: what is left to verify of a query whose access predicate holds.

A residual is 0 for nothing; a number above 0 for one equality or twig of an element whose depth
is known::

    number << CODE_SHIFT | CODE_TWIG | CODE_ABSOLUTE | depth

CODE_ABSOLUTE says that the depth counts from the root, else it counts up from the candidate's
element.  Below 0 it is a record of ``RecordPool`` with its sign turned::

    MODE_FIXED    required count      | position check | …          elements of known depth
    MODE_ON_PATH  required count      | offset … | step | step …    some way down to the element
    MODE_BELOW    the same, for a nested path                       some way down from it

    step          is_descendant symbol count | check | …
    check         kind a b

    kind            a          b         what is asked of the element
    CHECK_ATOM      atom                 an equality
    LESS to         attribute  number    a comparison by operator, see atoms.py
      AT_LEAST
    CHECK_EXISTS    attribute
    CHECK_DIFFERS   attribute  atom      some value that is another
    CHECK_NESTED    record               a path found below
    CHECK_TWIG      twig                 the same, of nothing but names: see twigs.py
    CHECK_ANYWHERE  record               a path found from the message, looked for once a message
    CHECK_VERIFIED  operator             whatever else: see yfilter/operators

``required`` is what the message must contain somewhere: ``atom << REQUIRED_SHIFT | REQUIRED_ATOM``,
``symbol << REQUIRED_SHIFT`` or 0.  A ``position`` is ``steps up << POSITION_SHIFT``, or
``depth << POSITION_SHIFT | POSITION_ABSOLUTE``.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if not cython.compiled:
    CODE_DEPTH, CODE_ABSOLUTE, CODE_POSITION, CODE_TWIG = 31, 32, 63, 64
    CODE_SHIFT = 7

    RECORD_MODE, RECORD_REQUIRED, RECORD_COUNT, RECORD_ROWS = range(4)
    MODE_FIXED, MODE_ON_PATH, MODE_BELOW = range(3)

    REQUIRED_ATOM = REQUIRED_SHIFT = 1

    FIXED_POSITION, FIXED_CHECK, FIXED_WIDTH = 0, 1, 4

    POSITION_UNKNOWN = -1
    POSITION_ABSOLUTE = POSITION_SHIFT = 1

    WAY_DESCENDANT, WAY_SYMBOL, WAY_COUNT, WAY_CHECKS = range(4)

    CHECK_KIND, CHECK_A, CHECK_B, CHECK_WIDTH = range(4)
    CHECK_ATOM, CHECK_EXISTS, CHECK_DIFFERS, CHECK_NESTED = range(5, 9)
    CHECK_ANYWHERE, CHECK_TWIG, CHECK_VERIFIED = range(9, 12)
