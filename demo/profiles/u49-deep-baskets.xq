(: Xaver near Los Angeles: Baskets five deep. :)
declare namespace m = "urn:demo:markets";
//m:basket/m:basket/m:basket/m:basket/m:basket[m:leg]
