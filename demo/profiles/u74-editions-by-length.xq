(: Bo: editions, the longest first. :)
for $e in //pubdata
order by number($e/@item-length) descending, $e/@edition.area
return <edition area="{$e/@edition.area}" length="{$e/@item-length}"/>
