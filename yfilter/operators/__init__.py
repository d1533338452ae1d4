"""Operators: expressions of profiles, compiled to work on the columns of a message."""
