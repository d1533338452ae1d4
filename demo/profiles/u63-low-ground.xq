(: Lea near New York: Areas no higher than 100 that have a polygon. :)
declare default element namespace "urn:oasis:names:tc:emergency:cap:1.2";
//area[polygon][altitude <= 100]
