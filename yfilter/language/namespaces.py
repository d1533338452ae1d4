"""The namespaces that prefixes of a profile mean before it declares any."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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
