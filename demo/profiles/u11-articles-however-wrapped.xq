(: Kofi near Houston: Articles, single or in a batch. :)
//nitf
