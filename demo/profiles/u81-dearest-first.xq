(: Hal near New York: quotes and trades, the dearest first. :)
declare namespace m = "urn:demo:markets";
for $q in //m:*[@symbol or m:symbol][.//m:price]
order by number(($q//m:price)[1]) descending, local-name($q)
return <priced kind="{local-name($q)}">{string(($q//m:price)[1])}</priced>
