(: Theo near Los Angeles: Matches nothing: no article is in a basket report. :)
//*:basket-report[.//nitf]
