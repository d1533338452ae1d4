(: Jana near Chicago: Every batch. :)
/batched-nitf
