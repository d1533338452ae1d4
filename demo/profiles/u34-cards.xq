(: Hugo near Chicago: A small card for each article. :)
for $n in $msg/nitf
let $h := $n/body/body.head/hedline/hl1
where $n/head/docdata/urgency/@ed-urg <= 4
return
  <card id="{$n/@uno}" city="{$n//city}">
    <title>{string($h)}</title>
    {$n/body/body.head/byline/person}
  </card>
