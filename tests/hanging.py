"""How long a test waits for something that hangs, before it says so.

No test measures by it: a machine many times slower than any of ours comes nowhere near it.  It is
below the ``faulthandler_timeout`` of pyproject.toml, which ends the whole process.
"""

SAFETY_SECONDS = 300.0
