(: Rosa near Chicago: Urgency 1 or 2, in batches too. :)
//docdata/urgency[@ed-urg < 3]
