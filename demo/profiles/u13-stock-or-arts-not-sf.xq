(: Mona near Chicago: Stock or arts, but not of San Francisco. :)
/nitf[head[tobject/tobject.subject[@tobject.subject.type = "Stock"
                                   or @tobject.subject.type = "Arts"]]]
     [not(head/pubdata/@edition.area = "SF")]
