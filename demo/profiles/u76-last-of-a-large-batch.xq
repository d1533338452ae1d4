(: Cleo: the last article of batches of more than two. :)
for $a in /batched-nitf[count(nitf) > 2]/nitf[last()]
return <last uno="{$a/@uno}">{$a/head/title}</last>
