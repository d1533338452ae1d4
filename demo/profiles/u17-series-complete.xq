(: Quinn near Houston: The last part of any series: part and total are the same. :)
//series[@series.part = @series.totalpart]
