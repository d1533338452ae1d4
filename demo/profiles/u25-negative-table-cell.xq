(: Yuri near Chicago: Tables with a company that lost more than 5. :)
//table/tr[td[@align = "right"] < -5]
