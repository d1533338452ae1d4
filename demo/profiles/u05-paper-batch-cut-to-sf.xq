(: Edda near San Francisco: Section 3.3 of the paper: of a batch of articles only those of San
   Francisco. :)
<batched-nitf> {
  for $n in $msg/batched-nitf/nitf
  where $n/head/pubdata/@edition.area = "SF"
  return $n
} </batched-nitf>
