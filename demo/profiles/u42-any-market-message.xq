(: Pia near New York: Anything of the markets namespace. :)
declare namespace m = "urn:demo:markets";
/m:*
