(: Udo near Houston: Blocks in blocks in blocks, with a note inside. :)
//block//block//block[note]
