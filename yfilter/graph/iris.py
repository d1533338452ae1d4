"""IRIs: which texts are absolute ones (RFC 3987), and what a reference means (RFC 3986, 5.2).

::

    http://a/b/c?q  and  ../d  ->  http://a/d
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LETTERS = "A-Za-z0-9\\-._~\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane * 0x10000 + (0x1000 if plane == 14 else 0))}-{chr(plane * 0x10000 + 0xFFFD)}"
    for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_PERCENT = "%[0-9A-Fa-f]{2}"
_DELIMITERS = "!$&'()*+,;="


def _some(characters: str) -> str:
    """As many as there are of these characters, of those that stand anywhere, and of ``%7E``."""
    return f"(?:[{_LETTERS}{_DELIMITERS}{characters}]|{_PERCENT})*+"


_SIX = "[0-9A-Fa-f]{1,4}"
_V6_ADDRESS = (
    rf"(?=[0-9A-Fa-f:.]*\])(?:(?:{_SIX}:){{7}}{_SIX}"
    rf"|(?=(?:[0-9A-Fa-f]*:){{2,8}}[0-9A-Fa-f.]*\])(?:{_SIX}(?::{_SIX})*)?::(?:{_SIX}(?::{_SIX})*)?"
    rf"(?::?[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}})?)"
)
_HOST = rf"(?:\[(?:{_V6_ADDRESS}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~{_DELIMITERS}:]+)\]|{_some('')})"
_ABSOLUTE = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:"
    rf"(?://(?:{_some(':')}@)?{_HOST}(?::[0-9]*)?(?:/{_some(':@/')})?|(?!//){_some(':@/')})"
    rf"(?:\?{_some(':@/?' + _PRIVATE)})?(?:#{_some(':@/?')})?"
)
# RFC 3986, appendix B; it fits any text.
_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def is_absolute_iri(text: str) -> bool:
    """Whether ``text`` is an IRI with a scheme, by the grammar of RFC 3987."""
    return _ABSOLUTE.fullmatch(text) is not None


class _Parts(NamedTuple):
    """None for a part that is not there."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    def __str__(self) -> str:
        scheme = "" if self.scheme is None else f"{self.scheme}:"
        authority = "" if self.authority is None else f"//{self.authority}"
        query = "" if self.query is None else f"?{self.query}"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        return f"{scheme}{authority}{self.path}{query}{fragment}"


def resolve(base: str, reference: str) -> str:
    """What ``reference`` means where ``base``, an absolute IRI, is the base; not checked."""
    to = _parts(reference)
    if to.scheme is not None:
        return reference if "/." not in to.path else str(to._replace(path=_dotless(to.path)))
    of = _parts(base)
    if to.authority is not None:
        return str(to._replace(scheme=of.scheme, path=_dotless(to.path)))
    if not to.path:
        query = of.query if to.query is None else to.query
        return str(of._replace(query=query, fragment=to.fragment))
    if to.path.startswith("/"):
        path = to.path
    elif of.authority is not None and not of.path:
        path = f"/{to.path}"
    else:
        path = of.path[: of.path.rfind("/") + 1] + to.path
    return str(of._replace(path=_dotless(path), query=to.query, fragment=to.fragment))


def _parts(text: str) -> _Parts:
    found = _PARTS.fullmatch(text)
    assert found is not None
    scheme, authority, path, query, fragment = found.groups()
    return _Parts(scheme, authority, path, query, fragment)


def _dotless(path: str) -> str:
    """Without the segments ``.`` and ``..``."""
    if "." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if kept and kept != [""]:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)
