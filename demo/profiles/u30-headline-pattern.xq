(: Dora near Chicago: Headlines of a certain shape. :)
//hl1[matches(., "^(A|An) .* (talks|timetable)$")]
