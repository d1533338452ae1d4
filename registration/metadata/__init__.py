"""Metadata (MDV): documents, rules over them, and the filter that finds what rules ask for."""
