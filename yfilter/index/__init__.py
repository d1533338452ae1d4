"""The index: which of very many profiles a message matches, by a lazily determinised automaton."""
