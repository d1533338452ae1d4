(: Jana near Seattle: Whatever comes from the planets as XML. :)
declare namespace rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/rdf:RDF
