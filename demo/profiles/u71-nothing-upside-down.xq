(: Ulla near San Francisco: Matches nothing: a head never stands in a body. :)
/nitf/body//head
