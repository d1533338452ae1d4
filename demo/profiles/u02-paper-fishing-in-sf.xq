(: Ben near Seattle: Q2 of the paper's Figure 5: where the fish are, around San Francisco. :)
$msg/nitf[head/pubdata[@edition.area = "SF"]]
         [.//tobject.subject[@tobject.subject.matter = "fishing"]]
