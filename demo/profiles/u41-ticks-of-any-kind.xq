(: Ola: Ticks in whatever namespace. :)
/*:ticks[*:trade]
