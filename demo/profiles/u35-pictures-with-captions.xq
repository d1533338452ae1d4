(: Ida near Chicago: Pictures and videos with their captions. :)
<pictures> {
  for $n in $msg/nitf, $m in $n/body/body.content/media
  where $m/@media-type = "image" or $m/@media-type = "video"
  return <picture kind="{$m/@media-type}" of="{$n/@uno}">{$m/media-caption/text()}</picture>
} </pictures>
