(: Birgit near New York: Quotes with the note that the spread is narrowing. :)
declare default element namespace "urn:demo:markets";
for $q in $msg/ticks/quote
where contains($q/note, "narrowing")
return <narrow symbol="{$q/@symbol}">{$q/bid}{$q/ask}</narrow>
