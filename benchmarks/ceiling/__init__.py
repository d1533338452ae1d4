"""``python -m benchmarks ceiling``: the loop of the index in plain C, on the tables of the engine.

``benchmark`` measures, ``recording`` keeps what a message looked like to the engine, ``replay``
compiles ``replay.c`` and hands it tables and messages.
"""
