"""MDV (seed 000): what metadata, and rules over it, cost."""
