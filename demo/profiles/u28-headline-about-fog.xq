(: Bea near San Francisco: Another week of fog in the headline. :)
/nitf[body/body.head/hedline/hl1[contains(., "fog")]]
