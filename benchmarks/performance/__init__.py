"""The parts of `python -m benchmarks`: each file has `run(quick)`, which prints its lines and returns its record."""
