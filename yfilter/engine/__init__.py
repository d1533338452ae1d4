"""What the engine works on: linear paths and what they imply, targets, limits and counts."""
