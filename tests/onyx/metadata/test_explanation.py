"""Why a resource is in a cache, and why a rule does not match it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onyx.metadata import MetadataProvider
from registration.metadata.documents import MetadataRefused

SCHEMA = b"""
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix m: <urn:onyx:metadata:> .
@prefix : <http://globe.example/> .
:CycleProvider a rdfs:Class .
:ServerInformation a rdfs:Class .
:serverHost a rdf:Property, owl:FunctionalProperty ;
    rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverInformation a rdf:Property, owl:FunctionalProperty, m:StrongReference ;
    rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
:memory a rdf:Property, owl:FunctionalProperty ;
    rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
"""
DOCUMENT = b"""
@prefix : <http://globe.example/> .
<#host> a :CycleProvider ; :serverHost "pirates.uni-passau.de" ; :serverInformation <#info> .
<#info> a :ServerInformation ; :memory 92 .
"""
URI = "http://e/doc.ttl"
HOST, INFO = f"{URI}#host", f"{URI}#info"


@pytest.fixture
def provider(tmp_path: Path) -> MetadataProvider:
    made = MetadataProvider(tmp_path)
    made.put_schema(SCHEMA, "text/turtle")
    made.register({URI: DOCUMENT}, "text/turtle")
    return made


def test_a_resource_is_held_over_strong_references(provider: MetadataProvider) -> None:
    rule = provider.add_rule("L1", "search CycleProvider c register c")
    found = provider.explain("L1", INFO)
    assert found.held == ((rule.id, (HOST, INFO)),)
    assert found.not_matched == {rule.id: ("it is no CycleProvider",)}
    assert provider.explain("L1", HOST).held == ((rule.id, (HOST,)),)


def test_it_is_said_which_condition_does_not_hold(provider: MetadataProvider) -> None:
    text = "search CycleProvider c register c where c.serverHost contains 'uni'"
    rule = provider.add_rule("L1", f"{text} and c.serverInformation.memory > 100")
    found = provider.explain("L1", HOST)
    assert not found.held
    (why,) = found.not_matched[rule.id]
    assert why.endswith("where c.serverInformation = s and s.memory > 100")


def test_what_is_not_known_is_no_member_of_a_class(provider: MetadataProvider) -> None:
    rule = provider.add_rule("L1", "search CycleProvider c register c")
    found = provider.explain("L1", "http://e/other")
    assert (found.held, found.not_matched) == ((), {rule.id: ("it is no CycleProvider",)})


def test_a_repository_without_rules_is_refused(provider: MetadataProvider) -> None:
    with pytest.raises(MetadataRefused, match="no-such-repository"):
        provider.explain("L2", HOST)
