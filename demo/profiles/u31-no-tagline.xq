(: Emil near New York: Articles that end without a tagline. :)
/nitf/body/body.end[not(tagline)]
