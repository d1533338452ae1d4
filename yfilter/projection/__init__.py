"""What of a message is needed, and the message with only that (section 4.2.2 of the paper)."""
