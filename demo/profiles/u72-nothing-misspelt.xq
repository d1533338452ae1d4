(: Viktor: Matches nothing: subjects begin with a capital. :)
//tobject.subject[@tobject.subject.type = "stock"]
