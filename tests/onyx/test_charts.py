"""Charts are well-formed and draw what they are given."""

from __future__ import annotations

from lxml import etree

from onyx.charts import Curve, columns_svg, curves_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_curves() -> None:
    curves = [Curve("a < b", [(0, 1), (10, 20)]), Curve("other", [(0, 5), (5, 2)], dashed=True)]
    tree = etree.fromstring(curves_svg("Title & more", "x", "y", curves))
    lines = tree.findall(f"{SVG}polyline")
    assert [len(line.get("points").split()) for line in lines] == [2, 2]
    (left, low), (right, high) = (
        tuple(map(float, point.split(","))) for point in lines[0].get("points").split()
    )
    assert left < right
    assert low > high  # up is a smaller y
    assert "a < b" in [text.text for text in tree.findall(f"{SVG}text")]


def test_columns() -> None:
    tree = etree.fromstring(columns_svg("Load", "partition", "profiles", [1.0, 3.0, 2.0]))
    _, *bars = tree.findall(f"{SVG}rect")
    heights = [float(bar.get("height")) for bar in bars]
    assert heights[1] == max(heights)
    assert abs(heights[2] - 2 * heights[0]) < 0.1


def test_nothing_to_draw_is_no_error() -> None:
    etree.fromstring(curves_svg("Empty", "x", "y", []))
    etree.fromstring(columns_svg("Empty", "x", "y", []))
    etree.fromstring(columns_svg("Zero", "x", "y", [0.0]))
