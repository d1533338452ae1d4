(: Zoe near Los Angeles: Articles in two editions. :)
/nitf/head[count(pubdata) = 2]
