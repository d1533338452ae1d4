(: Finn: the different matters of a batch, counted. :)
<matters> {
  for $m in distinct-values(/batched-nitf//@tobject.subject.matter)
  order by $m
  return <matter n="{count(//tobject.subject[@tobject.subject.matter = $m])}">{$m}</matter>
} </matters>
