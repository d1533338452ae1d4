(: === every RSS feed === :)
/rss

(: === RSS 2.0 with an item === :)
/rss[@version = "2.0"]/channel[item]

(: === every Atom 1.0 feed === :)
declare namespace a = "http://www.w3.org/2005/Atom";
/a:feed

(: === Atom of either age === :)
declare namespace a = "http://www.w3.org/2005/Atom";
declare namespace old = "http://purl.org/atom/ns#";
/a:feed[a:entry] | /old:feed[old:entry]

(: === titles of entries, whatever the format === :)
for $t in //*:entry/*:title | //*:item/*:title
return <title>{normalize-space($t)}</title>

(: === titles with their feed === :)
for $e in //*:entry[*:title]
return <entry feed="{normalize-space($e/../*:title[1])}">{normalize-space($e/*:title[1])}</entry>

(: === escaped contents === :)
declare default element namespace "http://purl.org/atom/ns#";
//*[@mode = "escaped"][@type = "text/html"]

(: === contents that are XHTML === :)
declare namespace x = "http://www.w3.org/1999/xhtml";
for $d in //x:div return <div>{$d/node()}</div>

(: === links in XHTML === :)
declare namespace x = "http://www.w3.org/1999/xhtml";
for $a in //x:a[@href] return <link to="{$a/@href}">{string($a)}</link>

(: === relative links, with the base that holds === :)
for $a in //*:a[@href][not(contains(@href, ":"))]
return <relative base="{$a/ancestor-or-self::*[@xml:base][1]/@xml:base}">{data($a/@href)}</relative>

(: === the language that holds === :)
for $t in //*:title
let $lang := $t/ancestor-or-self::*[@xml:lang][1]/@xml:lang
where $lang
return <title lang="{$lang}"/>

(: === scripts === :)
//*[contains(lower-case(.), "<script")] | //*:script

(: === images in HTML text === :)
//*[not(*)][matches(., "<img\s+src=")]

(: === handlers that should not be there === :)
for $a in //@*[starts-with(local-name(), "on")]
return element handler { attribute name { local-name($a) }, string($a) }

(: === enclosures === :)
for $l in //*:link[@rel = "enclosure"] return <enclosure type="{$l/@type}" length="{if ($l/@length) then $l/@length else 0}"/>

(: === links by relation, counted === :)
<links>{ for $r in distinct-values(//*:link/@rel) order by $r return <rel name="{$r}">{count(//*:link[@rel = $r])}</rel> }</links>

(: === chapters of podcasts, in order === :)
declare namespace c = "http://podlove.org/simple-chapters";
for $c in //c:chapter
order by $c/@start, $c/@title
return <chapter at="{substring($c/@start, 1, 8)}">{data($c/@title)}</chapter>

(: === the chapter after the first === :)
declare namespace c = "http://podlove.org/simple-chapters";
//c:chapter[1]/following-sibling::c:chapter[1]/@title

(: === chapters numbered, one document === :)
declare namespace c = "http://podlove.org/simple-chapters";
<chapters>{ for $c at $n in //c:chapter return <c n="{$n}">{concat($n, ". ", $c/@title)}</c> }</chapters>

(: === Dublin Core of a channel === :)
declare namespace dc = "http://purl.org/dc/elements/1.1/";
for $c in //*:channel[dc:*] return <dublin>{ for $d in $c/dc:* return element { local-name($d) } { string($d) } }</dublin>

(: === created before it was modified === :)
declare namespace t = "http://purl.org/dc/terms/";
for $i in //*[t:created castable as xs:dateTime][t:modified castable as xs:dateTime]
where xs:dateTime($i/t:created) < xs:dateTime($i/t:modified)
return <changed in="{local-name($i)}"/>

(: === issued in September 2002 === :)
declare namespace t = "http://purl.org/dc/terms/";
//*[t:issued[starts-with(., "2002-09")]]

(: === RDF and its sequence === :)
declare namespace rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
for $l in /rdf:RDF//rdf:li return <li>{ $l/@*[local-name() = "resource"]/string() }</li>

(: === RDF items that the channel lists === :)
declare namespace rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
for $i in /rdf:RDF/*:item
where $i/@rdf:about = //rdf:li/@*
return <listed>{data($i/@rdf:about)}</listed>

(: === places on a map === :)
for $p in //*:pos
let $n := tokenize(normalize-space($p), "\s+")
return <place lat="{$n[1]}" lon="{$n[2]}"/>

(: === lines with their length in points === :)
for $l in //*:posList return <line points="{count(tokenize(normalize-space($l), " ")) idiv 2}"/>

(: === circles in pictures === :)
declare namespace svg = "http://www.w3.org/2000/svg";
for $c in //svg:circle
return <circle r="{number(translate($c/@r, "px", ""))}" area="{round(number(translate($c/@r, "px", "")) * number(translate($c/@r, "px", "")) * 3.14)}"/>

(: === pictures as they are === :)
declare namespace svg = "http://www.w3.org/2000/svg";
for $s in //svg:svg return $s

(: === mathematics === :)
//*:math[*:mrow//*:mi]

(: === feeds without any entry === :)
/*:feed[not(*:entry)]

(: === one item out of many === :)
for $i in (//*:item | //*:entry)[last()] return <last n="{count(//*:item) + count(//*:entry)}">{local-name($i)}</last>

(: === channel descriptions longer than their titles === :)
//*:channel[string-length(*:description[1]) > string-length(*:title[1])]

(: === copyright, upper case === :)
for $c in //*:copyright[normalize-space(.) != ""] return <copyright>{upper-case(normalize-space($c))}</copyright>

(: === authors by name === :)
for $a in //*:author[*:name] order by $a/*:name[1] return <author>{$a/*:name[1]/text()}{ if ($a/*:uri or $a/*:url) then <web>{string(($a/*:uri | $a/*:url)[1])}</web> else () }</author>

(: === comments in feeds === :)
for $c in //comment() return <comment>{string-length($c)}</comment>

(: === attributes in any namespace === :)
for $a in //@*[namespace-uri() != ""][namespace-uri() != "http://www.w3.org/XML/1998/namespace"]
return <a name="{local-name($a)}" ns="{namespace-uri($a)}"/>

(: === a feed in version 9: matches nothing === :)
/*[@version = "9"]
