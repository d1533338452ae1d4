"""Which texts are absolute IRIs (RFC 3987)."""

from __future__ import annotations

import re

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


def is_absolute_iri(text: str) -> bool:
    """Whether ``text`` is an IRI with a scheme, by the grammar of RFC 3987."""
    return _ABSOLUTE.fullmatch(text) is not None
