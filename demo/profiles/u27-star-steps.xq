(: Abel near Seattle: Wildcards: something three levels down has a urgency of 5. :)
/*/*/*/urgency[@ed-urg = 5]
