"""ObjectGlobe (seed 001): queries over what many providers have, with all that they touch."""
