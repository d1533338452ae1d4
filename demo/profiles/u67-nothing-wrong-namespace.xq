(: Petra near Chicago: Matches nothing: no ticks in the currency namespace. :)
declare namespace fx = "urn:demo:currency";
/fx:ticks
