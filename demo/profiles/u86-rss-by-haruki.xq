(: Ivar near Los Angeles: Feeds with a post by Haruki. :)
declare namespace dc = "http://purl.org/dc/elements/1.1/";
//dc:creator[starts-with(., "Haruki")]
