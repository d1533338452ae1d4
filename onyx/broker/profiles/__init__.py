"""Profiles, and what all links want: the query plane."""
