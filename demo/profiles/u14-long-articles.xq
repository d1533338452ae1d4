(: Nils near New York: Articles of more than 2000 words in print. :)
//pubdata[@type = "print"][@item-length > 2000]
