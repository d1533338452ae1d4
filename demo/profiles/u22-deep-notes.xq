(: Vera: Notes exactly two blocks deep under the content. :)
/nitf/body/body.content/block/block/note
