"""ObjectGlobe's Figure 1, to be asked: python -m demo.queries.figure1 DIR."""
