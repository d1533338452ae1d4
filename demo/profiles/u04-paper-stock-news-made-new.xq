(: Dan near Seattle: Section 2.1 of the paper: stock news of San Francisco as a new kind of
   article. :)
for $n in $msg/nitf
where $n/head/pubdata/@edition.area = "SF"
  and $n//tobject.subject/@tobject.subject.type = "Stock"
return
  <stock_news>
    {$n/body/body.head/hedline}
    {$n/body/body.content}
  </stock_news>
