"""``resolve-uri()``: references resolved as RFC 3986, section 5.2, says."""

from __future__ import annotations

import re

from formats.graph.iris import resolve
from yfilter.language.nodes import AnyUri, DynamicError

_PARTS = re.compile(r"(?:([^:/?#]+):)?(//[^/?#]*)?([^?#]*)(?:\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_NO_URI = re.compile(r"[<>\"{}|\\^`\x00-\x1f]|%(?![0-9A-Fa-f]{2})|#.*#")
_BRACKETS = re.compile(r"[\[\]]")
_LITERAL = re.compile(r"//([^/@]*@)?\[([0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[^\[\]/]+)\](:[0-9]*)?")


def resolve_uri(reference: str, base: str | None) -> AnyUri:
    """FORG0002 where one is no IRI, or nothing can be resolved against the base; FONS0005 where
    there is no base and the reference needs one."""
    if _parts(reference)[0] is not None:
        return AnyUri(reference)
    if base is None:
        raise DynamicError("FONS0005", "a message has no base URI, and the reference is relative")
    scheme, authority, path, fragment = _parts(base)
    is_hierarchic = authority is not None or path.startswith("/")
    if scheme is None or fragment is not None or not is_hierarchic:
        raise DynamicError("FORG0002", f"nothing can be resolved against {base[:80]!r}")
    resolved = resolve(base.encode(), reference.encode()).decode()
    return AnyUri(" ".join(filter(None, resolved.split(" "))))  # white space of a URI collapses


def _parts(text: str) -> tuple[str | None, str | None, str, str | None]:
    """Scheme, authority, path and fragment; None for one that is not there."""
    found = _PARTS.fullmatch(text)
    is_scheme = found is not None and _SCHEME.fullmatch(found[1] or "a")
    if found is None or not is_scheme or _NO_URI.search(text) or text.startswith(":"):
        raise DynamicError("FORG0002", f"{text[:80]!r} is no IRI")
    # Brackets in a query are against RFC 3986 and usual all the same.
    if _BRACKETS.search(_LITERAL.sub("", found[2] or "") + found[3]):
        raise DynamicError("FORG0002", f"{text[:80]!r} has brackets around no address")
    return found[1], found[2], found[3], found[4]
