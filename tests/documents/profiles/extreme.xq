/alert/info[severity = "Extreme"]
