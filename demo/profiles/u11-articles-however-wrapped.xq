(: Kofi near Chicago: Articles, single or in a batch. :)
//nitf
