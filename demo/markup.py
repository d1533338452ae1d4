"""Small pieces of XML text: what the demo's message generators are written with.

Values are escaped here and nowhere else; children are markup already.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

Attributes = dict[str, str]


def text(value: str) -> str:
    """Character data."""
    return escape(value)


def cdata(value: str) -> str:
    """A CDATA section; ``]]>`` is split over two."""
    return "<![CDATA[" + value.replace("]]>", "]]]]><![CDATA[>") + "]]>"


def element(name: str, attributes: Attributes | None = None, *children: str) -> str:
    """An element on one line; without children it is an empty-element tag."""
    start = name + "".join(
        f" {key}={quoteattr(value)}" for key, value in (attributes or {}).items()
    )
    if not children:
        return f"<{start}/>"
    return f"<{start}>{''.join(children)}</{name}>"


def block(name: str, attributes: Attributes | None = None, *children: str) -> str:
    """An element with each child on a line of its own; empty strings are left out."""
    lines = [child for child in children if child]
    if not lines:
        return element(name, attributes)
    inner = "\n".join(lines).replace("\n", "\n  ")
    return element(name, attributes, f"\n  {inner}\n")


def document(root: str, encoding: str = "UTF-8", doctype: str = "") -> bytes:
    """A whole message: declaration, optional DOCTYPE, root element."""
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    return (head + (f"{doctype}\n" if doctype else "") + root + "\n").encode(encoding)
