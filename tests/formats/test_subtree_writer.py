"""What the one pass over the columns writes is what is written element by element."""

from __future__ import annotations

from random import Random

import pytest

from formats import parse_text, xml_writer
from formats.columns import SubtreeWriter
from formats.element_stream import ElementStream
from formats.names import QualifiedName
from formats.xml_writer import XmlWriter

_SPECIAL = [
    "&amp;",
    "&lt;",
    "&gt;",
    "&quot;",
    "&#9;",
    "&#10;",
    "&#13;",
    "]]&gt;",
    "\u00e9",
    "\U0001f600",
    "'",
]


def random_element(rng: Random, depth: int) -> str:
    def text() -> str:
        return "".join(rng.choices([*_SPECIAL, "a", " ", "0"], k=rng.randint(0, 6)))

    name = rng.choice(("a", "b", "p:c", "d-long-name"))
    declared = ' xmlns:q="urn:q"' if rng.random() < 0.05 else ""
    attributes = "".join(f' {name}="{text()}"' for name in ("x", "p:y") if rng.random() < 0.4)
    content = "".join(
        rng.choice(
            (
                text(),
                f"<!--{rng.choice(('', 'c &amp; <d>'))}-->",
                "<?t d?>",
                random_element(rng, depth - 1) if depth else text(),
                random_element(rng, depth - 1) if depth else "",
            )
        )
        for _ in range(rng.randint(0, 5))
    )
    return f"<{name}{declared}{attributes}>{content}</{name}>"


def copied(stream: ElementStream, element: int, around: QualifiedName) -> bytes:
    writer = XmlWriter()
    writer.start_element(around)
    writer.copy_element(stream, element)
    writer.end_element()
    return writer.getvalue()


@pytest.mark.parametrize("seed", range(8))
def test_one_pass_writes_what_is_written_element_by_element(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    places = [QualifiedName("", "", "r"), QualifiedName("", "urn:r", "r")]
    for _ in range(20):
        inner = "".join(random_element(rng, 4) for _ in range(3))
        stream = parse_text(f'<m xmlns:p="urn:p">{inner}</m>'.encode())
        copies = [
            (e, place, copied(stream, e, place)) for e in range(len(stream)) for place in places
        ]
        with monkeypatch.context() as patched:
            patched.setattr(xml_writer, "_is_plain_inside", lambda *_: False)
            for element, place, text in copies:
                assert copied(stream, element, place) == text


def test_what_is_inside_an_element() -> None:
    stream = parse_text(b'<a x="1">t<b y="&quot;"/>u<!--v--></a>')
    writer = SubtreeWriter(stream)
    content = stream.content_within(0)
    assert writer.inside(0, content.start, content.stop) == b't<b y="&quot;"/>u<!--v-->'
    assert writer.attributes(0) == b' x="1"'
    assert writer.inside(1, 0, 0) == b""


def test_room_is_found_for_long_values() -> None:
    text = "&lt;" * 100_000
    stream = parse_text(f'<a><b x="{text}">{text}</b></a>'.encode())
    content = stream.content_within(0)
    expected = f'<b x="{text}">{text}</b>'.encode()
    assert SubtreeWriter(stream).inside(0, content.start, content.stop) == expected
