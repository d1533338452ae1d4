"""What is said of a step that leads nowhere, where something nearly the same is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats import read_schema
from formats.allowed_content import read_allowed_content
from yfilter import Matcher
from yfilter.language.schema_check import SchemaCheck

ROOT = Path(__file__).resolve().parents[2]
CAP = "urn:oasis:names:tc:emergency:cap:1.2"
ALERT = f"""<cap:alert xmlns:cap="{CAP}"><cap:info><cap:severity>Extreme</cap:severity></cap:info>
</cap:alert>""".encode()
MESSAGE = b"""<alert severity="x"><info><Event>1</Event><area code="7"/>
<p:note xmlns:p="urn:p" p:lang="en"/></info></alert>"""
DTD = b"""<!ELEMENT alert (info)> <!ATTLIST alert severity CDATA #IMPLIED>
<!ELEMENT info (Event, area)> <!ELEMENT Event (#PCDATA)>
<!ELEMENT area EMPTY> <!ATTLIST area code CDATA #IMPLIED>"""


def hint(profile: str, message: bytes) -> str:
    failure = Matcher().explain(profile, message).failure
    assert failure is not None
    return failure.hint


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("/alert/info/event", "there is <Event>, and upper case is not lower case"),
        ('/alert[severity = "x"]', "there is an attribute of that name: write @severity"),
        ("/alert/@info", "there is an element of that name: write info"),
        ("/alert/area", "there is <area> further down: write //area"),
        ("/alert/info[not(b)][area/code > 3]", "there is an attribute of that name: write @code"),
    ],
)
def test_what_is_nearly_the_same_in_a_message_and_in_a_schema(profile: str, said: str) -> None:
    assert hint(profile, MESSAGE) == said
    warning = SchemaCheck(read_allowed_content(read_schema("a.dtd", DTD))).warning(profile)
    assert warning is not None and warning.hint == said
    assert str(warning).endswith(said)


def test_a_name_in_another_namespace_is_named_with_what_to_write() -> None:
    declared = f'declare default element namespace "{CAP}";'
    assert hint("/alert/info", ALERT).endswith(f"begin with {declared}")
    assert hint(f"{declared} /alert/severity", ALERT) == (
        "there is <severity> further down: write //severity"
    )
    other = 'declare namespace p = "urn:q";'
    assert hint(f"{other} //p:info", MESSAGE) == "there is <info> in no namespace: write Q{}info"
    said = hint("//@lang", MESSAGE)
    assert said.endswith('begin with declare namespace n = "urn:p"; and write @n:lang')


def test_nothing_is_said_where_nothing_is_like_it() -> None:
    assert hint("/alert/nothing", MESSAGE) == ""
    assert hint("/alert/info[area/@code = 8]", MESSAGE) == ""


def test_the_profile_of_the_readme_matches_a_real_kind_of_message() -> None:
    found = re.search(r'EXTREME = """\n(.*?)"""', (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    assert Matcher().explain(found.group(1), ALERT).matched
