"""How fast it is: ``python -m benchmarks`` lists the benchmarks, docs/benchmarks.md has results."""
