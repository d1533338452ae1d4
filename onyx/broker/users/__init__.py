"""Who takes results, and what they may take."""
