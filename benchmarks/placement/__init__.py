"""Placement: populations to be partitioned, schemes to compare, and what messages then visit."""
