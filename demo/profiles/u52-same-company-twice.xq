(: Arne near Chicago: A message where Nimbus Telecom is buyer and Cobalt Rail seller. :)
declare namespace m = "urn:demo:markets";
/m:ticks[m:trade/m:party[@role = "buyer"] = "Nimbus Telecom"]
        [m:trade/m:party[@role = "seller"] = "Cobalt Rail"]
