"""The declarations of an external DTD subset and of what it refers to, by expat; nothing else is
opened."""

from __future__ import annotations

import pyexpat
from collections.abc import Callable
from typing import Any, TypeAlias

from formats.errors import SchemaRefused
from formats.schema_files import NESTING_MAX, SchemaFiles

# (element, its content model as expat gives it)
ElementHandler: TypeAlias = Callable[[str, Any], None]
# (element, attribute, type, default, required)
AttributeHandler: TypeAlias = Callable[[str, str, str, str | None, int], None]


def read_declarations(
    files: SchemaFiles,
    element: ElementHandler | None = None,
    attribute: AttributeHandler | None = None,
) -> None:
    """Calls the handlers for each declaration.  SchemaRefused, with the place of what is wrong."""
    parser = pyexpat.ParserCreate()
    parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.ElementDeclHandler = element
    parser.AttlistDeclHandler = attribute
    _Subset(files, parser, files.main, files.data, 0).attach()
    parser.Parse(b'<!DOCTYPE x SYSTEM "schema.dtd"><x/>', True)


class _Subset:
    """The handler of external entities of a parser, and the document at ``path`` that is read when
    it is called first, all of it."""

    def __init__(self, files: SchemaFiles, parser: Any, path: str, data: bytes, depth: int) -> None:
        self._files = files
        self._parser = parser
        self._path = path
        self._data = data
        self._depth = depth

    def attach(self) -> None:
        self._parser.ExternalEntityRefHandler = self._main

    def _main(self, context: str | None, *_: object) -> int:
        self._read(context, self._path, self._data)
        return 1

    def _read(self, context: str | None, path: str, data: bytes) -> None:
        if self._depth >= NESTING_MAX:
            raise SchemaRefused("too-large", f"its parts include each other {NESTING_MAX} times")
        parser = self._parser.ExternalEntityParserCreate(context)
        parser.SetBase(path)
        inner = _Subset(self._files, parser, path, data, self._depth + 1)
        parser.ExternalEntityRefHandler = inner._part
        file = f"{path}: " if path != self._files.main else ""
        try:
            parser.Parse(data, True)
        except pyexpat.ExpatError as error:
            reason = file + (pyexpat.ErrorString(error.code) or "not well-formed")
            raise SchemaRefused("malformed", reason, error.lineno, error.offset + 1) from None
        except (ValueError, LookupError) as error:
            raise SchemaRefused("malformed", f"{file}its encoding is not read: {error}") from None

    def _part(
        self, context: str | None, base: str | None, system_id: str | None, public_id: str | None
    ) -> int:
        where = f"{self._path}, line {self._parser.CurrentLineNumber}: includes"
        found = self._files.open(base or self._path, system_id or "", where, public_id or "")
        if found is not None:
            self._read(context, found.path, found.data)
        return 1
