(: Carla near Los Angeles: Q3 of the paper's Figure 5: the text of the tide forecasts, and
   nothing around it. :)
<nitf> {
  for $n in $msg/nitf
  where $n/head/pubdata/@edition.area = "SF" and $n//series/@series.name = "Tide Forecasts"
  return $n/body/body.content
} </nitf>
