(: Fay near New York: The routing query for Broker 2 in the paper's Figure 4: everything in the
   New York edition. :)
/nitf/head/pubdata[@edition.area = "NY"]
