(: Lars near Houston: Each block that holds another, by itself. :)
for $b in $msg//block
where $b/block
return <block level="{$b/@level}">{$b/p}</block>
