(: Ivo: what follows a table or stands before it. :)
for $t in //table
return <around>{ attribute before { count($t/preceding-sibling::*) }, attribute after { count($t/following-sibling::*) }, comment { "a table" } }</around>
