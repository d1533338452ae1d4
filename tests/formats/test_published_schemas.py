"""Schemas as their owners publish them, which are not in the project.

Each line of the file that ``ONYX_PUBLISHED_SCHEMAS`` names is the path of a schema, a space, and a
pattern of messages, both relative to the file, or the path alone::

    siri/xsd/siri.xsd siri/examples/**/*.xml
    cda#infrastructure/cda/CDA.xsd
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lxml import etree

from formats import Validator, derive_dictionary
from formats.content_model import read_content_model
from formats.dictionary import read_terms
from formats.schema import what_is_unread
from onyx.schema_path import load_schema

FILE = Path(os.environ.get("ONYX_PUBLISHED_SCHEMAS", "/nowhere"))
LINES = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []

pytestmark = pytest.mark.skipif(not LINES, reason="needs ONYX_PUBLISHED_SCHEMAS")


@pytest.mark.parametrize("line", LINES)
def test_a_published_schema_is_read_and_validates_as_lxml_does_from_its_folder(line: str) -> None:
    path, _, pattern = line.partition(" ")
    schema = load_schema(FILE.parent / path)
    assert what_is_unread(schema) == ()
    model, terms = read_content_model(schema), read_terms(schema)
    assert model.roots and terms
    assert derive_dictionary(schema)
    validator = Validator(schema)
    oracle = etree.XMLSchema(etree.parse(FILE.parent / path.replace("#", "/")))
    valid = []
    for file in sorted(FILE.parent.glob(pattern)) if pattern else ():
        try:
            tree = etree.parse(file)
        except etree.XMLSyntaxError:
            continue
        is_valid = oracle.validate(tree)
        assert (validator.check(file.read_bytes()) is None) == is_valid, file
        if is_valid:
            valid.append(file)
            assert etree.QName(tree.getroot()).localname in model.roots, file
    print(f"{path}: {len(valid)} messages are valid")
    assert valid or not pattern
