(: Lena near New York: Articles about sports and about weather at once. :)
/nitf/head/tobject[tobject.subject/@tobject.subject.type = "Sports"]
                  [tobject.subject/@tobject.subject.type = "Weather"]
