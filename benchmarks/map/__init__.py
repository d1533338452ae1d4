"""What ``python -m benchmarks map`` takes besides ``benchmarks/map/benchmark.py``."""
