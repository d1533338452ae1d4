(: Uma near San Francisco: A bid below 12 with a size over 5000. :)
declare namespace m = "urn:demo:markets";
//m:quote[m:bid[@size > 5000] < 12]
