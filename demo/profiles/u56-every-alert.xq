(: Enno near San Francisco: All alerts. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";
/cap:alert
