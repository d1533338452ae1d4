(: Juno: articles in which every paragraph is short. :)
//nitf[every $p in body/body.content/p satisfies string-length($p) < 400]
