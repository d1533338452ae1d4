(: Olga near Los Angeles: The first three places of section A. :)
/nitf/head/pubdata[@position.section = "A" and @position.sequence <= 3]
