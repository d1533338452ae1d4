(: Vito near Houston: Anything quoted in yen; the attribute has a namespace of its own. :)
declare namespace fx = "urn:demo:currency";
//*[@fx:currency = "JPY"]
