"""IRI references and what they mean at a base: RFC 3986, section 5, and RFC 3987.

An IRI that is a term of a graph has a scheme, and none of the characters that N-Triples cannot
carry in it.  Nothing else is asked of it, and nothing is normalised: terms are compared character
by character.
"""

from __future__ import annotations

import re

# The parts of a reference (RFC 3986, appendix B): scheme, authority, path, query, fragment.
_PARTS = re.compile(
    rb"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:")
_NO_CHARACTER = re.compile(rb'[\x00-\x20<>"{}|^`\\]')


def has_scheme(reference: bytes) -> bool:
    """Whether a reference is an IRI as it is, whatever its base."""
    return _SCHEME.match(reference) is not None


def find_bad_character(iri: bytes) -> int:
    """The place of the first byte that no IRI can have, or -1."""
    found = _NO_CHARACTER.search(iri)
    return found.start() if found else -1


def without_fragment(iri: bytes) -> bytes:
    """A base is an IRI without its fragment."""
    return iri.partition(b"#")[0]


def resolve(base: bytes, reference: bytes) -> bytes:
    """The IRI that a reference means at a base, which is an IRI without fragment.

    A reference with a scheme is left as it is.  All else of RFC 3986, section 5.2.2.
    """
    if has_scheme(reference):
        return reference
    base_parts, parts = _PARTS.fullmatch(base), _PARTS.fullmatch(reference)
    if base_parts is None or parts is None:  # the pattern matches whatever there is
        raise ValueError("not a reference")
    scheme, authority, path, query, _ = base_parts.groups()
    _, own_authority, own_path, own_query, fragment = parts.groups()
    if own_authority is not None:
        authority, path, query = own_authority, _without_dots(own_path), own_query
    elif not own_path:
        query = query if own_query is None else own_query
    elif own_path.startswith(b"/"):
        path, query = _without_dots(own_path), own_query
    else:
        path, query = _without_dots(_merged(authority, path, own_path)), own_query
    return b"".join(
        [
            b"" if scheme is None else scheme + b":",
            b"" if authority is None else b"//" + authority,
            path,
            b"" if query is None else b"?" + query,
            b"" if fragment is None else b"#" + fragment,
        ]
    )


def _merged(authority: bytes | None, base_path: bytes, path: bytes) -> bytes:
    """Section 5.2.3: the path beside the last segment of the base's."""
    if authority is not None and not base_path:
        return b"/" + path
    return base_path[: base_path.rfind(b"/") + 1] + path


def _without_dots(path: bytes) -> bytes:
    """Section 5.2.4: a path without the segments ``.`` and ``..``."""
    rooted = path.startswith(b"/")
    kept: list[bytes] = []
    segments = path[rooted:].split(b"/")
    for segment in segments:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    return b"/" * rooted + b"/".join(kept)
