(: Sven near New York: Trades over 900. :)
declare namespace m = "urn:demo:markets";
/m:ticks/m:trade[m:price > 900]
