"""The namespaces that prefixes of a profile mean before it declares any, and names for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Final

from formats.graph.striped import PREFIXES
from formats.names import XML_NAMESPACE

FUNCTION_NAMESPACE = "http://www.w3.org/2005/xpath-functions"
MATH_NAMESPACE = f"{FUNCTION_NAMESPACE}/math"
PLACE_NAMESPACE = "urn:onyx:place"
SVRL_NAMESPACE = "http://purl.oclc.org/dsdl/svrl"
SCHEMA_NAMESPACE = "http://www.w3.org/2001/XMLSchema"
CODEPOINT_COLLATION = f"{FUNCTION_NAMESPACE}/collation/codepoint"
ERROR_NAMESPACE = "http://www.w3.org/2005/xqt-errors"
WRITTEN_OUT = "urn:onyx:written-out"  # of what is declared for functions as arguments
LOCAL_NAMESPACE = "http://www.w3.org/2005/xquery-local-functions"

INITIAL_NAMESPACES: Final[Mapping[str, str]] = {
    "": "",
    "xml": XML_NAMESPACE,
    "xs": SCHEMA_NAMESPACE,
    "xsi": f"{SCHEMA_NAMESPACE}-instance",
    "fn": FUNCTION_NAMESPACE,
    "math": MATH_NAMESPACE,
    "place": PLACE_NAMESPACE,
    "svrl": SVRL_NAMESPACE,
    "local": LOCAL_NAMESPACE,
    "err": ERROR_NAMESPACE,
}


def braced(namespace: str) -> str:
    """``Q{namespace}``, as it stands before a local name."""
    return f"Q{{{re.sub('[&{}]', lambda match: f'&#{ord(match[0])};', namespace)}}}"


# What is quoted stays; of a name in full: what is before it, its namespace, what comes after it.
_FULL_NAME = re.compile(r'"[^"]*"|(@|\$|\battribute |)Q\{([^{}]+)\}(?=(\*|[\w.-]+\(?))')


class ShortNames:
    """Writes names in full, ``Q{uri}local``, with prefixes, for people.

    ``own``: the prefixes that the reader knows, "" being the default for element names.  Another
    namespace has the prefix that is well known, or the last word of its URI.  ``Q{}local`` stays.
    """

    def __init__(self, own: Mapping[str, str] = INITIAL_NAMESPACES) -> None:
        self._namespaces = {**INITIAL_NAMESPACES, **own}
        self._own = {uri: prefix for prefix, uri in self._namespaces.items() if prefix}
        self._added: dict[str, str] = {}  # namespace -> prefix

    def short(self, text: str) -> str:
        """The text, of the same number of lines."""
        return _FULL_NAME.sub(self._written, text)

    def declared(self) -> list[str]:
        """A line ``prefix = uri`` for each prefix so far that is not of ``own``."""
        return [f"{prefix} = {uri}" for uri, prefix in self._added.items()]

    def whole(self, text: str) -> str:
        """The text, and below it the lines of ``declared``."""
        text = self.short(text)
        return "\n".join([text, *([""] if self._added else ()), *self.declared()])

    def _written(self, found: re.Match[str]) -> str:
        before, uri, name = found[1], unescape(found[2] or ""), found[3]
        if not uri:
            return found[0]
        is_element = not before and name[-1] not in "*("
        if is_element and uri == self._namespaces[""]:
            return ""
        prefix = self._own.get(uri) or self._added.get(uri)
        if prefix is None:
            words = re.findall(r"[a-z][a-z\d]*", uri.lower())
            usual = prefix = PREFIXES.get(uri) or (words or ["n"])[-1]
            number = 1
            while prefix in self._namespaces or prefix in self._added.values():
                number += 1
                prefix = f"{usual}{number}"
            self._added[uri] = prefix
        return f"{before}{prefix}:"
