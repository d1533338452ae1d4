(: Cleo: the first article of every batch. :)
/batched-nitf/nitf[1]
