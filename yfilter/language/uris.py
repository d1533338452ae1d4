"""``resolve-uri()``: references resolved as RFC 3986, section 5.2, says."""

from __future__ import annotations

import re

from yfilter.language.nodes import AnyUri, DynamicError

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_NO_URI = re.compile(r"[<>\"{}|\\^`\x00-\x1f]|%(?![0-9A-Fa-f]{2})|#.*#")


def resolve_uri(reference: str, base: str | None) -> AnyUri:
    """FORG0002 where one is no IRI, or nothing can be resolved against the base; FONS0005 where
    there is no base and the reference needs one."""
    scheme, authority, path, query, fragment = _parts(reference)
    if scheme is not None:
        return AnyUri(reference)
    if base is None:
        raise DynamicError("FONS0005", "a message has no base URI, and the reference is relative")
    base_scheme, base_authority, base_path, base_query, base_fragment = _parts(base)
    is_hierarchic = base_authority is not None or base_path.startswith("/")
    if base_scheme is None or base_fragment is not None or not is_hierarchic:
        raise DynamicError("FORG0002", f"nothing can be resolved against {base[:80]!r}")
    if authority is None:
        authority = base_authority
        if not path:
            path = base_path
            query = base_query if query is None else query
        elif path.startswith("/"):
            path = _without_dots(path)
        elif base_authority is not None and not base_path:
            path = _without_dots(f"/{path}")
        else:
            path = _without_dots(base_path[: base_path.rfind("/") + 1] + path)
    else:
        path = _without_dots(path)
    before = "" if authority is None else f"//{authority}"
    behind = ("" if query is None else f"?{query}") + ("" if fragment is None else f"#{fragment}")
    return AnyUri(f"{base_scheme}:{before}{path}{behind}")


def _parts(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment; None for one that is not there."""
    found = _PARTS.fullmatch(text)
    is_scheme = found is not None and _SCHEME.fullmatch(found[1] or "a")
    if found is None or not is_scheme or _NO_URI.search(text) or text.startswith(":"):
        raise DynamicError("FORG0002", f"{text[:80]!r} is no IRI")
    return found[1], found[2], found[3], found[4], found[5]


def _without_dots(path: str) -> str:
    """A path that begins with ``/`` or is empty, without the segments ``.`` and ``..``."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "".join(f"/{segment}" for segment in kept) or path[:1]
