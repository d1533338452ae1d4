(: Dov: every article's title, in an element that says how urgent it is. :)
for $a in //nitf
let $urgency := number($a/head/docdata/urgency/@ed-urg)
return if ($urgency <= 3) then <now>{string($a/head/title)}</now> else <later>{string($a/head/title)}</later>
