"""The corpus of engine.json: each message and profile is here for something that no other has."""

from __future__ import annotations

from formats.graph.syntaxes import GraphSyntax
from formats.media_types import XML

ORDER = """<?xml version="1.0"?>
<!-- first --><order id="o-7" currency="EUR" xmlns:x="urn:x"><customer x:vip="yes">
<name>Ana &amp; Söhne</name><city>Genova</city></customer>
<item no="1" price="9.50"><tag>tea</tag><tag>green</tag><count>3</count></item>
<item no="2" price="120"><tag>pot</tag><count>1</count></item>
<item no="3" price="-1.5e0"><note>to <b>be</b> paid <i>back</i></note><count/></item>
<total>146.99</total><placed>2026-11-21T17:30:00Z</placed><?print copies=2?></order>"""
RECURSIVE = """<part name="a"><part name="b"><part name="c"><leaf>1</leaf></part>
<leaf>2</leaf></part><part name="c"><leaf>3</leaf><part name="b"><leaf>4</leaf></part></part>
</part>"""
FEED = """<f:feed xmlns:f="urn:feed" xmlns="urn:text" xml:lang="en"><f:entry f:id="1">
<title>Fog</title><body xml:lang="de"><p>Nebel <![CDATA[<hier>]]></p><p/></body></f:entry>
<f:entry f:id="2"><title xmlns="urn:other">日本語 𝄞</title></f:entry></f:feed>"""
EMPTY = "<nothing/>"
GRAPH = """@prefix : <urn:x:> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:post1 a :Post ; :title "Fog over the bay"@en , "Nebel"@de ; :length 120 ; :author :ana .
:post2 a :Post ; :title "Trains" ; :length 4000 ; :author [ foaf:name "Bo" ] ; :cites :post1 .
:ana foaf:name "Ana" ; foaf:knows :bo ; :born "1970-02-03"^^xsd:date ."""
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="urn:x:">
<Post rdf:about="urn:x:post9"><title xml:lang="en">Harbour</title><length
rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">7</length></Post></rdf:RDF>"""

MESSAGES = {
    "order": (XML, ORDER),
    "recursive": (XML, RECURSIVE),
    "feed": (XML, FEED),
    "empty": (XML, EMPTY),
    "graph": (GraphSyntax.TURTLE.value, GRAPH),
    "rdf-xml": (GraphSyntax.RDF_XML.value, RDF_XML),
}

_ORDERS = {
    "child": "/order/item",
    "none": "/order/article",
    "descendant": "//tag",
    "star": "/*/*/tag",
    "attribute": '/order[@id = "o-7"]',
    "attribute-step": "/order/item/@price",
    "number": "/order/item[@price > 9.5]",
    "least": "/order/item[@price >= 9.5][count < 2]",
    "negative": "/order/item[@price < 0]",
    "text": '/order/item[tag = "tea"]',
    "own-text": '//tag[. = "pot"]',
    "second": "/order/item[2]",
    "last": "/order/item[last()]",
    "second-tag": "//tag[2]",
    "or": '//item[tag = "pot" or note]',
    "and-not": "/order/item[tag and not(note)]",
    "twig": '/order[customer/city = "Genova"][item[tag = "tea"][@no = 1]]/total',
    "wrong-twig": '/order[item[tag = "pot"][@no = 1]]',
    "deep-twig": "/order[item/note/b]/customer",
    "union": "//note | //city",
    "parent": '//tag[. = "green"]/../count',
    "siblings": "/order/item[1]/following-sibling::item[1]",
    "namespaced": 'declare namespace n = "urn:x"; /order/customer[@n:vip = "yes"]',
    "wildcard": "//@*:vip",
    "comment": "/comment()",
    "instruction": "//processing-instruction(print)",
    "contains": '//name[contains(., "Söhne")]',
    "starts": '//city[starts-with(., "Gen")]',
    "matches": r'/order[matches(@id, "^o-\d+$")]',
    "count": "/order[count(item) = 3]",
    "sum": "/order[sum(item/count[. != '']) = 4]",
    "quantified": "/order[every $i in item satisfies $i/@no > 0]",
    "some": "/order[some $i in item satisfies $i/@price > 100]",
    "range": "/order/item[@no = (2 to 5)]",
    "time": "/order[xs:dateTime(placed) > xs:dateTime('2026-01-01T00:00:00Z')]",
    "time-zone": "/order[xs:date(substring(placed, 1, 10)) eq xs:date('2026-11-21')]",
    "join": "/order[item/@no = item/count]",
    "arithmetic": "//item[@price * 2 > 200]",
    "string": 'for $o in /order return <s>{string-join($o/item/tag, ", ")}</s>',
    "flwor": "for $i in /order/item where $i/@price > 0 order by $i/@price descending return $i",
    "let": "for $o in /order let $n := count($o/item) return <n all='{$n}'>{$o/@id}</n>",
    "content": "for $i in /order/item return <e no='{$i/@no}'>{$i/tag}{$i/note/node()}</e>",
    "whole": "<all>{ for $i in //item order by $i/tag[1] return <t>{ $i/tag/text() }</t> }</all>",
    "computed": "for $o in /order return element {concat('x', 1)} {attribute a {$o/@id}, 'v'}",
    "conditional": "for $i in //item return <k>{if ($i/note) then 'b' else string($i/tag[1])}</k>",
    "position": "for $i at $p in //item return <p n='{$p}'>{string($i/@no)}</p>",
    "tuples": """for $a in //item, $b in //item where $a/@no < $b/@no
        return <q>{string($a/@no)}-{string($b/@no)}</q>""",
    "grouped": """for $t in //item/* group by $n := local-name($t)
        return <g name='{$n}'>{count($t)}</g>""",
    "typeswitch": """for $c in /order/item/* return typeswitch ($c) case element(tag)
        return <tag/> default return <other>{local-name($c)}</other>""",
    "function": """declare function local:twice($x) { 2 * $x };
        for $i in //item[count > 1] return <d>{local:twice($i/count)}</d>""",
    "variable": "declare variable $least := 100; //item[@price > $least]",
    "decimals": """for $o in /order
        return <v>{1.10 + 2.2}|{1 div 3}|{7 idiv 2}|{xs:double(1) div 3}</v>""",
    "escaped": "for $n in //name return <a b='{$n}'>{string($n)} &lt;&#65;></a>",
    "error-in-condition": "/order[total div 0 > 1]",
    "replaced": """for $o in /order return copy $c := $o modify
        (delete node $c/item[note], replace value of node $c/total with "0") return $c""",
}
_OTHERS = {
    "recursive": "//part//part",
    "recursive-same": '//part[@name = "b"]//leaf',
    "recursive-twig": '//part[@name = "c"][part]/leaf',
    "recursive-child": "//part/part/leaf",
    "ancestor": '//leaf[ancestor::part[@name = "b"]]',
    "feed": 'declare namespace f = "urn:feed"; /f:feed/f:entry[@f:id = "1"]',
    "feed-default": 'declare default element namespace "urn:text"; //body/p',
    "feed-lang": "//*:body[lang('de')]",
    "feed-result": """declare namespace f = "urn:feed"; declare namespace o = "urn:other";
        for $e in //f:entry return <e xmlns="urn:new">{$e/o:title}{$e/*:body}</e>""",
    "any": "/*",
    "empty": "/nothing[not(*)]",
    "no-order": "for $n in /nothing return <n/>",
}
_GRAPHS = {
    "select": "PREFIX : <urn:x:> SELECT ?p ?t { ?p a :Post ; :title ?t }",
    "select-filter": "PREFIX : <urn:x:> SELECT ?p { ?p :length ?n FILTER(?n > 1000) }",
    "select-language": 'PREFIX : <urn:x:> SELECT ?t { ?p :title ?t FILTER(lang(?t) = "de") }',
    "select-optional": """PREFIX : <urn:x:> PREFIX foaf: <http://xmlns.com/foaf/0.1/>
        SELECT ?p ?name { ?p :author ?a OPTIONAL { ?a foaf:name ?name } } ORDER BY ?name""",
    "select-union": """PREFIX : <urn:x:> PREFIX foaf: <http://xmlns.com/foaf/0.1/>
        SELECT * { { ?a foaf:knows ?b } UNION { ?a :cites ?b } }""",
    "select-not": "PREFIX : <urn:x:> SELECT ?p { ?p a :Post FILTER NOT EXISTS { ?p :cites ?q } }",
    "select-count": "PREFIX : <urn:x:> SELECT (COUNT(*) AS ?n) { ?p a :Post }",
    "select-path": "PREFIX : <urn:x:> SELECT ?t { ?p :cites/:title ?t }",
    "select-bind": "PREFIX : <urn:x:> SELECT ?m { ?p :length ?n BIND(?n * 2 AS ?m) }",
    "select-values": 'PREFIX : <urn:x:> SELECT ?p { ?p :title ?t VALUES ?t { "Trains" "Fog" } }',
    "ask": "PREFIX : <urn:x:> ASK { ?p :length 120 }",
    "ask-no": "PREFIX : <urn:x:> ASK { ?p :length 121 }",
    "construct": "PREFIX : <urn:x:> CONSTRUCT { ?q :citedBy ?p } { ?p :cites ?q }",
    "construct-turtle": """# results: text/turtle
        PREFIX : <urn:x:> CONSTRUCT { ?p :t ?t } { ?p a :Post ; :title ?t ; :length ?n }""",
    "describe": "PREFIX : <urn:x:> DESCRIBE ?p { ?p :length 7 }",
    "date": """PREFIX : <urn:x:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT ?a { ?a :born ?d FILTER(?d < "1980-01-01"^^xsd:date) }""",
    "rdql": "SELECT ?t WHERE (?p, <urn:x:title>, ?t) AND ?t =~ /fog/i",
}
PROFILES = _ORDERS | {f"other-{k}": v for k, v in _OTHERS.items()}
PROFILES |= {f"graph-{k}": v for k, v in _GRAPHS.items()}

REFUSED = (
    "/order[",
    "/order/item[@price >]",
    "//p:a",
    "$x/a",
    "for $a in //a return $b",
    "/order[unknown()]",
    "/order[count()]",
    "doc('x')",
    "/order[@a = 1",
    "for $a in //a retrun $a",
    "<a>{ //b }</c>",
    "",
    "/a[matches(., '(')]",
    "SELECT ?x { ?x }",
    "PREFIX : <urn:x:> SELECT ?y { ?x :p 1 }",
    "SELECT ?x FROM <urn:g> { ?x ?p 1 }",
)
"""Texts whose users are told why they are no profiles."""

RULES = """<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
<let name="least" value="0"/>
<pattern id="prices"><rule context="item"><assert id="price" test="@price > $least" role="error">
Item <value-of select="@no"/> costs <value-of select="@price"/></assert>
<report id="dear" test="@price > 100">Item <value-of select="@no"/> of <name path=".."/> is
<emph>dear</emph>.</report></rule></pattern>
<pattern id="customers"><rule context="order[customer]">
<assert id="total" test="total = sum(item/@price)">
The total is <value-of select="total"/>.</assert></rule>
<rule context="part">
<assert id="leaf" test="leaf">No leaf in <value-of select="@name"/>.</assert></rule>
</pattern></schema>"""
