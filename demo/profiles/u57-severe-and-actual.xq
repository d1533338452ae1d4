(: Fritz near San Francisco: What is actual and at least severe. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
/alert[status = "Actual"][info[severity = "Extreme" or severity = "Severe"]]
