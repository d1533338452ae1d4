"""Messages: the data plane."""
