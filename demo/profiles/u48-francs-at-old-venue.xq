(: Wanda near New York: Francs where currencies have no namespace. :)
//quote[@currency = "CHF"]
