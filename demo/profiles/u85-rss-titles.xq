(: Hedy near Houston: Titles of what the planets list, where they are XML. :)
declare namespace rss = "http://purl.org/rss/1.0/";
for $t in /*/rss:item/rss:title return $t
