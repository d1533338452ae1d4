"""The declarations of an external DTD subset, by expat; nothing from elsewhere is read."""

from __future__ import annotations

import pyexpat
from collections.abc import Callable
from typing import Any, TypeAlias

# (element, its content model as expat gives it)
ElementHandler: TypeAlias = Callable[[str, Any], None]
# (element, attribute, type, default, required)
AttributeHandler: TypeAlias = Callable[[str, str, str, str | None, int], None]


def read_declarations(
    data: bytes,
    element: ElementHandler | None = None,
    attribute: AttributeHandler | None = None,
) -> None:
    """Calls the handlers for each declaration of a DTD that ``read_schema`` has accepted."""
    parser = pyexpat.ParserCreate()
    parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)

    def subset(context: str | None, _base: object, system_id: str | None, _public: object) -> int:
        if system_id == "schema.dtd":
            inner = parser.ExternalEntityParserCreate(context)
            inner.ExternalEntityRefHandler = lambda *_: 1
            inner.Parse(data, True)
        return 1

    parser.ElementDeclHandler = element
    parser.AttlistDeclHandler = attribute
    parser.ExternalEntityRefHandler = subset
    parser.Parse(b'<!DOCTYPE x SYSTEM "schema.dtd"><x/>', True)
