(: Tina near Chicago: Buys of 4500 or more. :)
declare default element namespace "urn:demo:markets";
//trade[@side = "buy" and quantity >= 4500]
