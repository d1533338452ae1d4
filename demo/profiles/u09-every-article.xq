(: Igor near Chicago: Every single article. :)
/nitf
