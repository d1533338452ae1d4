(: Zoe near Chicago: Articles in two editions. :)
/nitf/head[count(pubdata) = 2]
