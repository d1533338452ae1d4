(: Ana near Seattle: The query of section 2.1 of the paper, Q1 of its Figure 5: stock news of
   San Francisco, as it comes. :)
$msg/nitf[head/pubdata[@edition.area = "SF"]]
         [.//tobject.subject[@tobject.subject.type = "Stock"]]
