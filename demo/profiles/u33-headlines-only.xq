(: Gil near Chicago: The headlines of every article, nothing else. :)
for $h in $msg//hedline/hl1 return $h
