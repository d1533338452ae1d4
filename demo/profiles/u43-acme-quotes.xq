(: Rolf near New York: Quotes of ACME. :)
declare namespace m = "urn:demo:markets";
//m:quote[@symbol = "ACME"]
