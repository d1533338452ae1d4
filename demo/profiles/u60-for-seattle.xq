(: Ines near Seattle: Whatever has Seattle among its areas. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
/alert/info/area[geocode[valueName = "AREA"][value = "SEA"]]
