(: Esme: an element for each subject, named after its matter. :)
for $a in //nitf
return element subjects { attribute uno { $a/@uno },
  for $s in $a//tobject.subject order by $s/@tobject.subject.type
  return element { string($s/@tobject.subject.matter) } { string($s/@tobject.subject.refnum) } }
