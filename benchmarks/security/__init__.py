"""What safety costs, and what those who mean harm can take: ``python -m benchmarks security``."""
