(: === every article === :)
/nitf

(: === with a title === :)
/nitf/head[title]

(: === a path over several levels === :)
/nitf/body/body.head/hedline/hl1

(: === descendants at any depth === :)
//block//ul/li

(: === a value in an attribute === :)
//alt-code[@value = 7]

(: === two attributes of one element === :)
//alt-code[@value > 10][@idsrc < 5]

(: === nested predicates === :)
/nitf[head[docdata][pubdata]]/body[body.content[.//media[media-reference]]]

(: === either of two tables === :)
//table[thead or tfoot][tbody/tr/td]

(: === tables as their size === :)
for $t in //table
return <table rows="{count($t//tr)}" cells="{count($t//td | $t//th)}"/>

(: === rows in order of their cells === :)
for $r in //tr[td]
order by count($r/td) descending, string($r/td[1])
return <row n="{count($r/td)}">{normalize-space($r/td[1])}</row>

(: === the first cell of the second row === :)
//tr[2]/td[1]

(: === cells by position === :)
for $c at $n in //tr[1]/* return <cell n="{$n}" kind="{local-name($c)}"/>

(: === lists turned around === :)
<list>{ for $l in reverse((//ol | //ul)/li) return <li>{normalize-space($l)}</li> }</list>

(: === numbers in items === :)
<numbers>{ for $l in //li[. castable as xs:integer] let $n := xs:integer($l) where $n mod 2 = 0 return <n>{$n, $n * $n}</n> }</numbers>

(: === the sum over items === :)
<sum>{ let $l := //li[number(.) = number(.)] where $l return (sum($l), min($l), max($l)) }</sum>

(: === definitions with their terms === :)
for $d in //dl/dd
let $t := $d/preceding-sibling::dt[1]
where $t
return <definition term="{normalize-space($t)}">{normalize-space($d)}</definition>

(: === nested blocks === :)
for $b in //block[ancestor::block] return <block depth="{count($b/ancestor::block)}">{$b/@id}</block>

(: === blocks below others, without media === :)
//block[ancestor::block][not(.//media)]

(: === notes and whether they have footnotes === :)
for $n in //note return <note class="{$n/@noteclass}">{ if ($n//fn) then "with" else "without" }</note>

(: === locations and their codes === :)
for $l in //location, $c in $l//alt-code
return <code of="{local-name($c/..)}" value="{$c/@value}"/>

(: === places with the same code twice === :)
//location[some $a in .//alt-code, $b in .//alt-code satisfies $a << $b and $a/@value = $b/@value]

(: === people in a byline === :)
for $p in //byline//person return <person>{$p/@*, normalize-space($p)}</person>

(: === media, what is referred to === :)
for $m in //media[media-reference]
return <media type="{$m/@media-type}" refs="{count($m/media-reference)}">{ $m/media-caption[1]/text() }</media>

(: === mixed content as it stands === :)
for $p in //body.content/p[*] return $p

(: === text alone === :)
for $p in //p[*] return <p>{ for $t in $p//text() return concat("[", normalize-space($t), "]") }</p>

(: === fractions === :)
for $f in //frac[numer][denom]
return <frac>{concat($f/numer[1], "/", $f/denom[1])}</frac>

(: === values of fractions === :)
for $f in //frac where number($f/denom[1]) > 0
return <value>{ round-half-to-even(number($f/numer[1]) div number($f/denom[1]), 3) }</value>

(: === quotations with a credit === :)
//bq[credit][block/p or block/bq]

(: === a summary of the head === :)
for $h in /nitf/head
return element head { for $n in distinct-values($h/*/local-name()) order by $n return element { $n } { count($h/*[local-name() = $n]) } }

(: === properties of the subject === :)
for $s in //tobject.subject order by $s/@tobject.subject.refnum, $s/@tobject.subject.code return <subject>{ $s/@* }</subject>

(: === published with an edition === :)
/nitf/head/pubdata[@edition.name][@date.publication]

(: === revisions after a date code === :)
//revision-history[@norm > 5] | //docdata[.//@norm = 5]

(: === the language of blocks === :)
for $l in distinct-values(//block/@lang) order by number($l) return <lang n="{count(//block[@lang = $l])}">{$l}</lang>

(: === ids that stand twice === :)
<ids>{ for $i in distinct-values(//@id) where count(//*[@id = $i]) > 3 order by number($i) return <id>{$i}</id> }</ids>

(: === after the body's head === :)
//body.head/following-sibling::body.content//media[1]/media-reference

(: === a message on Mars: matches nothing === :)
//location[. = "Mars"]
