(: Maja near New York: All ticks of the new venues. :)
declare default element namespace "urn:demo:markets";
/ticks
