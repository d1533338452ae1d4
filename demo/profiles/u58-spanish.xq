(: Greta near Houston: Alerts with a text in Spanish. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
/alert/info[language = "es"]
