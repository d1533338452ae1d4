"""Names for people: with the profile's own prefixes, or with others that are declared below."""

from __future__ import annotations

import pytest

from yfilter import Matcher
from yfilter.language.namespaces import ShortNames, braced
from yfilter.language.query_parser import prefixes_of

DEFAULT = 'declare default element namespace "urn:d"; '


@pytest.mark.parametrize(
    ("profile", "path"),
    [
        ('declare namespace p = "urn:p"; //p:a/@p:b', "//p:a[@p:b]"),
        ('declare namespace p = "urn:p"; //p:*[p:a = "Q{urn:p}a"]', '//p:*[p:a = "Q{urn:p}a"]'),
        (f"{DEFAULT}/a[b]\r\n/c", "/a[b]/c"),
        (f"{DEFAULT}/a/@Q{{urn:d}}b", "/a[@d:b]\n\nd = urn:d"),
        (f"{DEFAULT}/a/Q{{urn:d}}*", "/a/d:*\n\nd = urn:d"),
        (f"{DEFAULT}/a/Q{{}}b", "/d:a/b\n\nd = urn:d"),  # an element of no namespace stays one
        ("/Q{urn:x:cap:1.2}a/Q{urn:y:cap:2}b", None),
        ("//Q{http://purl.org/rss/1.0/}item", "//rss:item\n\nrss = http://purl.org/rss/1.0/"),
        ("PREFIX e: <http://e/> SELECT ?x { ?x e:by 1 }", None),
    ],
)
def test_a_path_has_the_prefixes_of_its_profile(profile: str, path: str | None) -> None:
    names = ShortNames(prefixes_of(profile))
    shown = names.whole(Matcher().explain(profile).matching_path)
    assert "/Q{" not in shown
    assert path in (None, shown)


def test_a_namespace_has_one_prefix_and_a_prefix_one_namespace() -> None:
    names = ShortNames({"cap": "urn:mine"})
    assert names.short("Q{urn:x:cap:1.2}a/Q{urn:y:CAP}b/Q{urn:mine}c/Q{urn:y:CAP}d") == (
        "cap2:a/cap3:b/cap:c/cap3:d"
    )
    assert names.declared() == ["cap2 = urn:x:cap:1.2", "cap3 = urn:y:CAP"]


@pytest.mark.parametrize("uri", ["urn:a&b{c}", "1.2", "http://xml/", "Ä"])
def test_any_uri_is_declared_as_it_is(uri: str) -> None:
    (said,) = ShortNames().whole(f"/{braced(uri)}a").splitlines()[2:]
    prefix, _, declared = said.partition(" = ")
    assert declared == uri
    assert ShortNames({prefix: uri}).whole(f"/{braced(uri)}a") == f"/{prefix}:a"
