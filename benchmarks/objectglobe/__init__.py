"""ObjectGlobe (seed 001): queries over many providers, and how well they are planned."""
