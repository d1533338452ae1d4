"""What is asked of a broker."""
