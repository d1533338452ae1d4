(: === every news item === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
/newsItem

(: === anything in the namespace of NewsML-G2 === :)
declare namespace g2 = "http://iptc.org/std/nar/2006-10-01/";
//g2:*[1]

(: === text items that may be used === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
/newsItem/itemMeta[itemClass/@qcode = "ninat:text"][not(pubStatus) or pubStatus/@qcode = "stat:usable"]

(: === pictures and videos === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
/newsItem[itemMeta/itemClass/@qcode = ("ninat:picture", "ninat:video")]

(: === headlines === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
for $h in //headline return <headline xmlns="">{normalize-space($h)}</headline>

(: === a card for each item === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $i in /n:newsItem
return <card guid="{$i/@guid}" version="{$i/@version}">{
  for $s in $i/n:contentMeta/n:subject return <subject type="{substring-after($s/@type, ":")}">{string($s/n:name[1])}</subject>
}</card>

(: === subjects, by type then name === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $s in //n:subject[n:name]
order by $s/@type empty greatest, string($s/n:name[1])
return <subject>{$s/@type, string($s/n:name[1])}</subject>

(: === names in German === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $n in //n:name[starts-with(@xml:lang, "de")] return <name>{$n/@xml:lang, string($n)}</name>

(: === one document with the names in all languages === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
<names>{ for $l in distinct-values(//n:name/@xml:lang) order by $l return element { concat("l-", $l) } { count(//n:name[@xml:lang = $l]) } }</names>

(: === German and French of one thing === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $c in //*[n:name/@xml:lang = "de"][n:name/@xml:lang = "fr"]
return <both de="{$c/n:name[@xml:lang = "de"][1]}" fr="{$c/n:name[@xml:lang = "fr"][1]}"/>

(: === created in 2016 === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
//contentCreated[. castable as xs:dateTime][year-from-dateTime(xs:dateTime(.)) = 2016]/..

(: === versions and the first of them === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $m in //n:itemMeta[n:firstCreated castable as xs:dateTime]
let $first := xs:dateTime($m/n:firstCreated), $now := xs:dateTime($m/n:versionCreated)
where $now gt $first
return <age years="{year-from-dateTime($now) - year-from-dateTime($first)}"/>

(: === groups and what they hold === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $g at $p in //n:group
return <group n="{$p}" id="{$g/@id}" items="{count($g/n:itemRef)}" groups="{count($g/n:groupRef)}"/>

(: === the root group followed to its members === :)
for $s in //*:groupSet, $r in $s/*:group[@id = $s/@root]/*:groupRef
let $to := $s/*:group[@id = $r/@idref]
return <member>{$to/@id, $to/@role}</member>

(: === large items === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
//n:itemRef[@size > 2000][n:title]

(: === the largest rendition === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
<largest>{
  let $sizes := //n:remoteContent/@size
  for $r in //n:remoteContent[@size = max($sizes)]
  return <rendition size="{$r/@size}">{data($r/@rendition)}</rendition>
}</largest>

(: === renditions from large to small === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $r in //n:remoteContent[@width]
order by number($r/@width) * number($r/@height) descending, $r/@href
return <r w="{$r/@width}" h="{$r/@height}" wide="{if ($r/@width > $r/@height) then "yes" else "no"}"/>

(: === inline text in NITF === :)
declare namespace nitf = "http://iptc.org/std/NITF/2006-10-18/";
for $p in //nitf:body.content/nitf:p[1] return <first words="{count(tokenize(normalize-space($p), " "))}">{substring(normalize-space($p), 1, 60)}</first>

(: === paragraphs as they are === :)
declare namespace nitf = "http://iptc.org/std/NITF/2006-10-18/";
for $p in //nitf:p[position() < 3] return $p

(: === anything with a credit line === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
/*[.//creditline or .//by]

(: === copyright by holder === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $r in //n:rightsInfo[n:copyrightHolder/n:name]
return <rights holder="{$r/n:copyrightHolder/n:name}">{ if ($r/n:usageTerms) then normalize-space($r/n:usageTerms[1]) else "any use" }</rights>

(: === keywords in one string === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
<keywords>{ for $m in //n:contentMeta where $m/n:keyword return string-join($m/n:keyword, "; ") }</keywords>

(: === events and where === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $e in //n:eventDetails
return <event start="{$e/n:dates/n:start}">{ for $l in $e/n:location return <at>{string($l/n:name[1])}</at> }</event>

(: === coverage planned === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $c in //n:newsCoverage[n:planning]
return element { "coverage" } { attribute id { $c/@id }, for $p in $c/n:planning/* return element { local-name($p) } { string($p) } }

(: === planning items of some urgency === :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";
/planningItem[contentMeta/urgency <= 5]

(: === links by their relation === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $l in //n:link[@rel] return <link rel="{$l/@rel}">{data($l/@residref)}</link>

(: === who is mentioned twice === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $q in distinct-values(//@qcode) where count(//@qcode[. = $q]) > 1 order by $q return <twice code="{$q}"/>

(: === every code of media topics === :)
//@qcode[starts-with(., "medtop:")]

(: === topics above a subject === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $b in //n:subject/n:broader return <broader of="{$b/../@qcode}" is="{$b/@qcode}"/>

(: === people, with a comment === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $p in //*[@type = "cpnat:person"]
return <person><!-- a person -->{string($p/n:name[1])}<?checked no?></person>

(: === the attributes of the root === :)
for $r in /* return element root { $r/@*[namespace-uri() = ""], attribute kind { local-name($r) } }

(: === items in English that are not of IPTC === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
/*[starts-with(@xml:lang, "en")][every $p in n:itemMeta/n:provider satisfies not($p/@qcode = "nprov:IPTC")]

(: === some subject without a name === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
/*[some $s in .//n:subject satisfies empty($s/n:name)]

(: === the three first elements of the metadata === :)
declare namespace n = "http://iptc.org/std/nar/2006-10-01/";
for $e in //n:itemMeta/*[position() = (1 to 3)] return <meta name="{name($e)}" n="{count($e/preceding-sibling::*) + 1}"/>

(: === items of the year 1900: matches nothing === :)
//*[starts-with(., "1900-01-01T")]
