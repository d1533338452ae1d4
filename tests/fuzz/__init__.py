"""Whatever comes in, it is read or refused with a code: ``python -m tests.fuzz``.

A target (targets.py) is a reader and what it may say of bytes that mean harm.  The same targets
are run on seeded damage of good inputs, which is the test (test_targets.py), and, by hand, by
atheris, which looks for inputs that reach what no other has (``--coverage``).  What profiles cost
is a target, too: its oracle counts calls and bytes (cost.py).
"""
