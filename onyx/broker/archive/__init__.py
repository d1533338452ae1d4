"""What a broker keeps of the messages that it accepts."""
