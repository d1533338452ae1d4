(: Sami near Chicago: What the night desk wrote. :)
/nitf/head/meta[@name = "desk"][@content = "night"]
