(: Ola near New York: Ticks in whatever namespace. :)
/*:ticks[*:trade]
