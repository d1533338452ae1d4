(: Yara near Houston: Baskets in baskets with a good share of GOLF. :)
declare default element namespace "urn:demo:markets";
/basket-report//basket//basket/leg[@symbol = "GOLF"][@weight > 0.5]
