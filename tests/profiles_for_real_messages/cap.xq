(: === every alert of either version === :)
/*:alert

(: === alerts of version 1.2 === :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";
/cap:alert

(: === actual alerts that are no tests === :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.1";
/alert[status = "Actual"][msgType = ("Alert", "Update")]

(: === severe or extreme === :)
//*:info[*:severity = ("Severe", "Extreme")]

(: === headline of each info === :)
for $i in //*:info
where $i/*:headline
return <headline severity="{$i/*:severity}">{string($i/*:headline[1])}</headline>

(: === meteorological, ordered by severity === :)
for $i in //*:info[*:category = "Met"]
order by $i/*:severity descending, $i/*:event[1]
return <met>{$i/*:event, $i/*:severity}</met>

(: === one document for each message with its areas === :)
<areas>{ for $a in //*:area return <area>{normalize-space($a/*:areaDesc[1])}</area> }</areas>

(: === areas with a polygon === :)
for $a in //*:area[*:polygon]
return <polygon name="{$a/*:areaDesc}" points="{count(tokenize(normalize-space($a/*:polygon[1]), " "))}"/>

(: === circles, taken apart === :)
for $c in //*:circle
let $parts := tokenize(normalize-space($c), " ")
return <circle center="{$parts[1]}" radius="{$parts[2]}"/>

(: === geocodes by name === :)
for $g in //*:geocode
return element { lower-case(substring-before(concat($g/*:valueName, ":"), ":")) } { $g/*:value/text() }

(: === updates name what they replace === :)
for $r in //*:references
return <replaces>{ for $t in tokenize(normalize-space($r), " ") return <one>{$t}</one> }</replaces>

(: === parameters as attributes === :)
for $p in //*:parameter
where $p/*:value != ""
return <parameter name="{$p/*:valueName}" value="{normalize-space($p/*:value[1])}"/>

(: === the first info in English, else the first === :)
let $english := //*:info[starts-with(*:language, "en")]
for $i in (if ($english) then $english else //*:info)[1]
return <chosen language="{$i/*:language}">{$i/*:event}</chosen>

(: === how many infos === :)
for $a in /*:alert
return <count infos="{count($a/*:info)}" areas="{count($a//*:area)}" codes="{count($a/*:code)}"/>

(: === alerts with more than one info === :)
/*:alert[count(*:info) > 1]

(: === the second info only === :)
for $i in /*:alert/*:info[2] return $i/*:event

(: === the last parameter of each info === :)
for $p in //*:info/*:parameter[last()] return $p

(: === expires later the same day === :)
for $i in //*:info[*:effective castable as xs:dateTime][*:expires castable as xs:dateTime]
where xs:dateTime($i/*:expires) > xs:dateTime($i/*:effective)
return <valid from="{$i/*:effective}" to="{$i/*:expires}"/>

(: === sent in a year === :)
for $a in /*:alert[*:sent castable as xs:dateTime]
return <sent year="{year-from-dateTime(xs:dateTime($a/*:sent))}" month="{month-from-dateTime(xs:dateTime($a/*:sent))}"/>

(: === sent before 2012 === :)
/*:alert[*:sent castable as xs:dateTime][xs:dateTime(*:sent) < xs:dateTime("2012-01-01T00:00:00Z")]

(: === earthquakes, anywhere in the text === :)
/*:alert[*:info[matches(*:event[1], "earthquake|tsunami", "i")]]

(: === signed alerts === :)
declare namespace ds = "http://www.w3.org/2000/09/xmldsig#";
/*[ds:Signature/ds:SignedInfo]

(: === what was signed with === :)
declare namespace ds = "http://www.w3.org/2000/09/xmldsig#";
for $m in //ds:SignatureMethod
return <method>{ substring-after($m/@Algorithm, "#") }</method>

(: === urgency and certainty together === :)
for $i in //*:info
let $rank := if ($i/*:urgency = "Immediate") then 1 else if ($i/*:urgency = "Expected") then 2 else 3
order by $rank, $i/*:certainty
return <info rank="{$rank}">{string-join(($i/*:urgency, $i/*:certainty), "/")}</info>

(: === the web address when there is one === :)
for $i in //*:info
return <web>{ if ($i/*:web) then string($i/*:web[1]) else "none" }</web>

(: === the whole of every area, copied === :)
for $a in //*:area return $a

(: === everything but instructions === :)
for $i in //*:info return <info>{$i/*[not(local-name() = "instruction")]}</info>

(: === long descriptions are cut === :)
for $d in //*:description
return <description length="{string-length($d)}">{
  if (string-length($d) > 40) then concat(substring(normalize-space($d), 1, 40), "...") else string($d)
}</description>

(: === a digest as one text === :)
<digest>{
  for $i in //*:info
  return concat($i/*:event[1], " (", lower-case($i/*:severity[1]), "); ")
}</digest>

(: === siblings behind the event === :)
//*:event[following-sibling::*:urgency]/following-sibling::*[1][self::*:urgency or self::*:responseType]

(: === the alert around an area === :)
for $a in //*:area[1]
return <where sender="{$a/ancestor::*:alert/*:sender}">{$a/*:areaDesc}</where>

(: === codes without the profile === :)
for $c in distinct-values(//*:code) return element code { substring-after($c, "profile:") }

(: === resources by their kind === :)
for $r in //*:resource return <resource type="{$r/*:mimeType}">{string($r/*:resourceDesc[1])}</resource>

(: === alerts in Klingon: matches nothing === :)
//*:info[*:language = "tlh"]
