(: Silke near Seattle: Matches nothing: no trade is that dear. :)
declare namespace m = "urn:demo:markets";
for $t in $msg//m:trade where $t/m:price > 1000000 return <never>{$t/m:price}</never>
