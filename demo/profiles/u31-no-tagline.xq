(: Emil near Chicago: Articles that end without a tagline. :)
/nitf/body/body.end[not(tagline)]
