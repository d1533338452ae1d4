"""Golden files: the surface of the program that users and peers see, committed word for word.

A change of a golden file is a decision: it shows as a diff of the commit, whose body says why.
``python -m tests.golden`` writes the files anew (``make golden``), ``test_golden.py`` compares.

=================  ============================================================================
file               holds
=================  ============================================================================
help.txt           ``--help`` of every verb
openapi.json       the document of the gateway's API
wire.json          messages in each wire format, a graph in each syntax
rows.json          a row of each table, the database of a store, a file of an archive
simulation.json    frames sent, deliveries and rows stored of some scenarios and seeds
engine.json        matches, results, routing queries, needs and refusals of a corpus
qt3.json           how many cases of each set of the W3C's QT3 suite pass
w3c-graphs.json    how many of the W3C's tests of RDF and SPARQL are taken
=================  ============================================================================

Committed elsewhere are the vectors of frames (``tests/overlay/link/vectors.json``, one for each
type), those of the binary and dictionary forms (``tests/formats/vectors.json``), and the schema of
what commands print with ``--json`` (``docs/cli-json-schema.json``, held by
``tests/onyx/test_cli_json.py``).
"""
