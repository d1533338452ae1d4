"""The engine: linear paths, NFA and operator network, and one message on them."""
