(: Cem near Houston: Headlines that begin with the harbour board and have a second line. :)
//hedline[starts-with(hl1, "The harbour board")][hl2]
