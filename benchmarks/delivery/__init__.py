"""What the benchmark ``deliver`` is made of: its parts, the process measured, the correct answers.

Each part runs in a process of its own (``python -m benchmarks.delivery.process``), which tells what
it has found a line at a time, so that what was found before the time was up is not lost.
"""
