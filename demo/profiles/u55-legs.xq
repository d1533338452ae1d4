(: Delia near Los Angeles: Every leg of a basket as it is. :)
declare namespace m = "urn:demo:markets";
for $l in $msg//m:leg[@weight >= 0.9] return $l
