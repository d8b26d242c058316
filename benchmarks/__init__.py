"""Measurements: each file is a script of its own; `python -m benchmarks` runs speed and memory as one suite."""
