"""The oracle: the language and graphs in plain Python, each profile alone on each message."""
