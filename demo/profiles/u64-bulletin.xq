(: Milo near Houston: A bulletin of each actual alert for Houston, in every language. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
<bulletin> {
  for $a in $msg/alert, $i in $a/info
  where $a/status = "Actual" and $i/area/areaDesc = "Houston"
  return
    <entry lang="{$i/language}" severity="{lower-case($i/severity)}">
      <headline>{string($i/headline)}</headline>
      <areas>{string-join($i/area/areaDesc, "; ")}</areas>
    </entry>
} </bulletin>
