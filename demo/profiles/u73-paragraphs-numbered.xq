(: Ada near Seattle: the paragraphs of long articles, numbered. :)
for $p at $n in /nitf/body/body.content/p
let $text := normalize-space($p)
where count(/nitf/body/body.content/p) > 4
return <paragraph n="{$n}" words="{count(tokenize($text, " "))}">{substring($text, 1, 40)}</paragraph>
