(: Kaori: A word in Japanese. :)
//*:instruction[contains(., "海岸")]
