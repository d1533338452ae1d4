(: Nora near Los Angeles: Updates of earthquakes, the information alone. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";
for $i in $msg/cap:alert[cap:msgType = "Update"]/cap:info
where $i/cap:event = "Earthquake"
return $i
