(: Pavel near Los Angeles: Late parts of long series. :)
//series[@series.totalpart >= 6][@series.part > 3]
