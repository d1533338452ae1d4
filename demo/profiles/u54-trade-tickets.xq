(: Cyril near Chicago: A ticket for every dear or large trade. :)
declare namespace m = "urn:demo:markets";
declare namespace fx = "urn:demo:currency";
<tickets> {
  for $t in $msg/m:ticks/m:trade
  where $t/m:price > 300 or $t/m:quantity > 4900
  return
    <ticket id="{$t/@id}" currency="{$t/@fx:currency}">
      <what>{string($t/@symbol)}</what>
      {$t/m:price}
      <parties>{string-join($t/m:party, " / ")}</parties>
    </ticket>
} </tickets>
