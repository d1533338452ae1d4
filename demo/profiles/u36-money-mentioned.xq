(: Jens near Chicago: Sums of more than 500 with the sentence around them. :)
for $p in $msg//p
where $p/money > 500
return <sum unit="{$p/money/@unit}">{$p/money/text()}</sum>
