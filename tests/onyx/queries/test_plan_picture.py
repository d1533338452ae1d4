"""Pictures of query plans: each operator once, in its provider's colour, above its inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from demo.queries import figure1
from onyx.cli.main import main
from onyx.errors import EXIT_USAGE
from onyx.queries import Catalog
from onyx.queries.plan_picture import plan_svg
from onyx.queries.planning import plan_query

SVG = "{http://www.w3.org/2000/svg}"


def test_a_plan_is_drawn_with_all_its_operators(tmp_path: Path) -> None:
    market = Catalog.read(figure1.make(tmp_path, rows=20)).market
    root = plan_query(figure1.QUERY, market, "ann").root
    nodes = list(root.walk())
    tree = etree.fromstring(plan_svg(root).encode())
    groups = tree.findall(f"{SVG}g")
    titles = [group.findtext(f"{SVG}title") for group in groups]
    boxes = [group.find(f"{SVG}rect") for group in groups]
    for node, title in zip(nodes, titles, strict=True):
        assert node.operator in title and f"at {node.site.name}" in title
        assert title.endswith(f"{node.figures.rows:,.0f} rows")
    by_site = {(n.site.name, b.get("stroke")) for n, b in zip(nodes, boxes, strict=True)}
    assert len(by_site) == len({name for name, _ in by_site}) == len({c for _, c in by_site}) > 1
    at = {id(n): (float(b.get("x")), float(b.get("y"))) for n, b in zip(nodes, boxes, strict=True)}
    assert all(at[id(below)][1] > at[id(n)][1] for n in nodes for below in n.inputs)
    assert len(set(at.values())) == len(nodes), "no box on another"
    lines = tree.findall(f"{SVG}line")
    crossing = sum(below.site != n.site for n in nodes for below in n.inputs)
    assert len(lines) == len(nodes) - 1
    assert sum(line.get("stroke-dasharray") is not None for line in lines) == crossing > 0
    width, height = float(tree.get("width")), float(tree.get("height"))
    assert all(x + 212 <= width and y + 54 <= height for x, y in at.values())


def test_the_command_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    market, picture = figure1.make(tmp_path, rows=20), tmp_path / "plan.svg"
    sql = "SELECT id FROM A.R WHERE title < '<&>'"
    command = ["query", sql, "--catalog", str(market), "--svg", str(picture)]
    assert main(command) == EXIT_USAGE
    assert main([*command, "--explain"]) == 0
    assert "scan" in capsys.readouterr().out
    assert "<&>" in "".join(etree.parse(picture).getroot().itertext())
