(: Odo near New York: Matches nothing: there is no Paris edition. :)
/nitf/head/pubdata[@edition.area = "PAR"]
