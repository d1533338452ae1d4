(: Jon near Seattle: Wind of more than 120 km/h; "unknown" and other names do not count. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
//parameter[valueName = "wind-kmh"][value > 120]
