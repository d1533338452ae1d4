"""All golden files."""

from __future__ import annotations

from tests.golden.conformance import graphs, lacks_graphs, lacks_qt3, qt3
from tests.golden.engine import engine
from tests.golden.golden_file import GoldenFile
from tests.golden.simulation import simulation
from tests.golden.stores import rows
from tests.golden.surfaces import (
    help_of_verbs,
    lacks_the_gateway,
    openapi_document,
    says_the_same,
)
from tests.golden.wire import wire

FILES = (
    GoldenFile("help.txt", help_of_verbs, agree=says_the_same),
    GoldenFile("openapi.json", openapi_document, lacks_the_gateway),
    GoldenFile("wire.json", wire),
    GoldenFile("rows.json", rows),
    GoldenFile("simulation.json", simulation),
    GoldenFile("engine.json", engine),
    GoldenFile("qt3.json", qt3, lacks_qt3),
    GoldenFile("w3c-graphs.json", graphs, lacks_graphs),
)
