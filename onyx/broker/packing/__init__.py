"""How messages are written for links, and read."""
