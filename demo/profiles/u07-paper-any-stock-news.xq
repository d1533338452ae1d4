(: Gus near Seattle: Half of the routing query for Broker 5 in Figure 4: stock news of anywhere.
   :)
/nitf//tobject.subject[@tobject.subject.type = "Stock"]
