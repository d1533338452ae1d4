"""``python -m benchmarks language --rules`` on a rule set of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main

pytest.importorskip("saxonche")

RULES = """<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2"
  xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <ns prefix="o" uri="urn:o"/><ns prefix="u" uri="urn:u"/>
  <let name="most" value="o:order/@most"/>
  <xsl:key name="by-no" match="o:item" use="@no"/>
  <xsl:function name="u:whole"><xsl:param name="n"/>
    <xsl:sequence select="$n castable as xs:integer"/></xsl:function>
  <pattern>
    <rule context="o:item[1] | o:gift/@kind"><let name="n" value="string(.)"/>
      <report id="first" test="true()">first <name/> <value-of select="($n, 1 + 1)"/></report>
    </rule>
    <rule context="o:item | o:order/*">
      <assert id="few" test="@n &lt;= $most">Not <value-of select="@n"/> but {<emph>
        <value-of select="$most"/></emph>}.</assert>
      <assert id="whole" test="u:whole(@no)"/>
      <assert id="unique" test="count(key('by-no', @no)) = 1"/>
      <report id="again" test="preceding::o:item[@no = current()/@no]"/>
      <report id="now" test="current-date() ge xs:date('2026-11-20')"/>
      <assert id="home" test="base-uri() = @home"/>
    </rule>
  </pattern>
</schema>"""
ORDER = """<order xmlns="urn:o" most="3"><item no="1" n="2"/><item no="2" n="3"/><gift kind="a"/>
  <item no="3" n="1">x</item></order>"""


def test_rules_are_held_against_a_stylesheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "orders"
    (folder / "examples").mkdir(parents=True)
    (folder / "order.sch").write_text(RULES)
    (folder / "copy.sch").write_text(RULES)
    (folder / "examples" / "order.xml").write_text(ORDER)
    words = ["language", "--rules", str(tmp_path), "--mutations", "100", "--seed", "7", "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schematron_accepted"], said["schematron_wrong"]) == (6 / 7, 0)
    (report,) = said["rules"]["sets"]
    assert report["file"] == "orders/copy.sch"
    assert (report["accepted"], report["total"], report["messages"]) == (6, 7, 101)
    assert report["fired"] > 200
    assert [why.split(" ")[:2] for why in report["refused"]] == [["home:", "base-uri()"]]
    assert main(words[:-1]) == 0
    assert "6 of 7 assertions; 101 messages" in capsys.readouterr().out
