(: Ralf near Houston: Matches nothing: alerts always have a namespace. :)
/alert[info]
