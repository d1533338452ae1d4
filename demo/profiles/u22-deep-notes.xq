(: Vera: Notes exactly two blocks deep under the content, wherever there is room for this
   profile. :)
/nitf/body/body.content/block/block/note
