"""The profile language: text to syntax tree, evaluation on a message, results."""
