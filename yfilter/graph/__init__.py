"""Graph profiles: patterns over RDF graphs, as G-ToPSS has them (seed 002)."""
