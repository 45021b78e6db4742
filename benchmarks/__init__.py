"""Side-by-side measurements of the scoring engine: ``python -m benchmarks.compare``."""
