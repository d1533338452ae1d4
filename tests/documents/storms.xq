/alert[info/event = "Storm"]
