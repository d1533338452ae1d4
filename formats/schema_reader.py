"""Reads the SchemaModel of a schema in any of the three languages."""

from __future__ import annotations

from formats.dtd_reader import read_dtd
from formats.relaxng_reader import read_relaxng
from formats.schema import Schema, parse_schema_document, stands_alone
from formats.schema_model import SchemaModel
from formats.xsd_reader import read_xsd


def read_schema_model(schema: Schema) -> SchemaModel:
    """The model of a schema that ``read_schema`` has accepted; depends on its bytes alone."""
    if schema.kind == "dtd":
        return read_dtd(schema.data, is_whole=stands_alone(schema))
    read = read_xsd if schema.kind == "xsd" else read_relaxng
    return read(parse_schema_document(schema.data))
