"""What ``benchmarks.routing`` measures: networks of real routing tables."""
