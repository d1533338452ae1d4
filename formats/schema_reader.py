"""Reads the SchemaModel of a schema in any of the three languages."""

from __future__ import annotations

from formats.dtd_reader import read_dtd
from formats.relaxng_reader import read_relaxng
from formats.schema import Schema, read_roots
from formats.schema_model import SchemaModel
from formats.xsd_reader import read_xsd


def read_schema_model(schema: Schema) -> SchemaModel:
    """The model of a schema that ``read_schema`` has accepted; depends on its bytes alone."""
    files = schema.files()
    if schema.kind == "dtd":
        return read_dtd(files)
    roots = read_roots(schema, files)
    if schema.kind == "xsd":
        return read_xsd(roots, is_whole=files.is_whole)
    return read_relaxng(roots[0])
