"""``onyx taxonomy`` against a running network."""

from __future__ import annotations

from pathlib import Path

from onyx.errors import EXIT_DATA
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]

PREFIXES = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:t:> .\n"
FOG = PREFIXES + ":Fog rdfs:subClassOf :Weather . :san-francisco a :City ."


def test_a_taxonomy_is_put_listed_shown_and_removed(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "topics.ttl"
    file.write_text(FOG)
    (line,) = shell.lines("taxonomy", "put", "topics", file)
    assert line.startswith("topics: 2 classes, 0 properties, 1 instances, version ")
    assert shell.lines("taxonomy", "put", "topics", file) == ["topics: nothing to do"]
    (listed,) = shell.objects("taxonomy", "list")
    assert (listed["name"], listed["syntax"], listed["classes"]) == ("topics", "text/turtle", 2)
    assert shell.objects("taxonomy", "show", "topics")[0]["text"] == FOG
    file.write_text(PREFIXES + ":A rdfs:subClassOf :B . :B rdfs:subClassOf :A .")
    assert shell.run("taxonomy", "put", "other", file) == EXIT_DATA
    assert shell.err.endswith("urn:t:A → urn:t:B → urn:t:A [taxonomy-cycle]\n")
    assert shell.lines("taxonomy", "remove", "topics") == ["topics is removed"]
    assert shell.lines("taxonomy", "list") == []
    assert shell.err == "There are none.\n"
