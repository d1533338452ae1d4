(: Hilde near Los Angeles: Tsunamis. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";
//cap:info[cap:event = "Tsunami"]
