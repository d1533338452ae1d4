(: Noah near Chicago: Ticks without a namespace: the old venue. :)
/ticks[@venue = "OLDX"]
