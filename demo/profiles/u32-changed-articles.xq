(: Flora near Chicago: Articles that say when they were changed. :)
/nitf[@change.date]
