"""What those who mean harm get of a real network."""
