(: Olga near Chicago: The first three places of section A. :)
/nitf/head/pubdata[@position.section = "A" and @position.sequence <= 3]
