"""A query plan as SVG: a tree of operators, each in the colour of its cycle provider.

Rows go upwards: an operator stands above the ones whose rows it takes, and a line that leaves a
cycle provider is dashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from onyx.charts import COLOURS, STYLE
from registration.queries.query_plan import PlanNode

WIDTH, HEIGHT = 212, 54
"""Of the box of an operator, without the gaps."""
GAP = 22
TOP = 52  # of the first row, below the legend
TEXT_MAX = 30  # characters; a title has the rest


@dataclass(slots=True)
class _Box:
    node: PlanNode
    x: float  # of the left side, in boxes
    depth: int
    below: list[_Box]


def plan_svg(root: PlanNode, *, styled: bool = True) -> str:
    """The picture as a text, light or dark as the reader's system is; without ``styled`` as the
    page is that it stands in."""
    boxes: list[_Box] = []
    top = _placed(root, 0, boxes)
    names = sorted({(box.node.site.name, box.node.site.uri) for box in boxes})
    colours = {uri: COLOURS[at % len(COLOURS)] for at, (_, uri) in enumerate(names)}
    parts = [*_legend(names, colours), *_lines(top)]
    for box in boxes:
        parts += _drawn(box, colours[box.node.site.uri])
    body, style = "\n".join(parts), f"<style>{STYLE}</style>" if styled else ""
    legend = sum(36 + 6.6 * len(name) for name, _ in names)
    width = max(_left(max(box.x for box in boxes) + 1), GAP + legend)
    height = _upper(max(box.depth for box in boxes) + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">\n{style}\n'
        f'<rect class="paper" width="100%" height="100%" rx="8"/>\n{body}\n</svg>\n'
    )


def _placed(node: PlanNode, depth: int, boxes: list[_Box]) -> _Box:
    """The box of an operator, in the middle above those below it, which stand side by side."""
    below = [_placed(each, depth + 1, boxes) for each in node.inputs]
    leaves = sum(not box.below for box in boxes)
    x = (below[0].x + below[-1].x) / 2 if below else float(leaves)
    boxes.append(_Box(node, x, depth, below))
    return boxes[-1]


def _left(x: float) -> float:
    return GAP + x * (WIDTH + GAP)


def _upper(depth: int) -> float:
    return TOP + depth * (HEIGHT + GAP)


def _legend(names: list[tuple[str, str]], colours: dict[str, str]) -> list[str]:
    parts, x = [], float(GAP)
    for name, uri in names:
        parts.append(f'<rect x="{x}" y="22" width="12" height="12" rx="2" fill="{colours[uri]}"/>')
        parts.append(f'<text class="label" x="{x + 17}" y="32">{_said(name)}</text>')
        x += 36 + 6.6 * len(name)
    return parts


def _lines(box: _Box) -> list[str]:
    parts: list[str] = []
    for each in box.below:
        x, y = _left(box.x) + WIDTH / 2, _upper(box.depth) + HEIGHT
        dashes = ' stroke-dasharray="5 4"' if each.node.site.uri != box.node.site.uri else ""
        parts.append(
            f'<line class="axis"{dashes} x1="{_left(each.x) + WIDTH / 2}" '
            f'y1="{_upper(each.depth)}" x2="{x}" y2="{y}"/>'
        )
        parts += _lines(each)
    return parts


def _drawn(box: _Box, colour: str) -> list[str]:
    node, x, y = box.node, _left(box.x), _upper(box.depth)
    kind = f"{node.kind} " if node.kind and node.operator == "join" else ""
    by = f", {node.function.name} of {node.function.provider}" if node.function else ""
    figures = f"{node.figures.rows:,.0f} rows"
    whole = f"{kind}{node.operator} {node.text} at {node.site.name}{by}: {figures}"
    lines = (f"{kind}{node.operator}", node.text, figures)
    shape = f'x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
    return [
        f"<g><title>{_said(whole)}</title>",
        f'<rect {shape} fill="{colour}" fill-opacity="0.14" stroke="{colour}"/>',
        *(
            f'<text class="label" x="{x + 8}" y="{y + 15 + 16 * at}">{_said(_cut(line))}</text>'
            for at, line in enumerate(lines)
            if line
        ),
        "</g>",
    ]


def _said(text: str) -> str:
    """As XML may have it."""
    return escape("".join(each if each.isprintable() else " " for each in text))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
