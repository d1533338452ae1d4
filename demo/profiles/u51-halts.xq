(: Zita: Trading halts of every venue. :)
//*:halt/*:reason[@code]
