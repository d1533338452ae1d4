(: Xenia near New York: The bank in the running text. :)
//p[org = "Oak Street Bank"][contains(., "prices")]
