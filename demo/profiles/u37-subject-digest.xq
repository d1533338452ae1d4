(: Kira near Chicago: Batches as digests: a line for each subject. :)
<digest> {
  for $n in $msg/batched-nitf/nitf, $s in $n/head/tobject/tobject.subject
  where $s/@tobject.subject.type != "Sports"
  return
    <line about="{concat($s/@tobject.subject.type, " / ", $s/@tobject.subject.matter)}">
      {for $h in $n/body/body.head/hedline/hl1 return <h>{string($h)}</h>}
    </line>
} </digest>
