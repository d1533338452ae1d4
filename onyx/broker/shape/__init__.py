"""A network whose links and brokers come and go."""
