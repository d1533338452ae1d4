"""What ``benchmarks.formats`` measures: its messages and its clocks."""
