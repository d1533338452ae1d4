(: Willi near New York: Whatever names Grace Kim. :)
//*[person = "Grace Kim"]
