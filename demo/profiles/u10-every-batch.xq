(: Jana: Every batch, wherever there is room for this profile. :)
/batched-nitf
