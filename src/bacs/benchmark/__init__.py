"""Sweeps over shifts and methods: recipes to cells, one stored record per cell, on this machine or a cluster."""

from bacs.benchmark.cell import Cell
from bacs.benchmark.plan import plan
from bacs.benchmark.recipe import Recipe, read
from bacs.benchmark.store import records
from bacs.benchmark.sweep import SweepSummary, sweep

__all__ = ["Cell", "Recipe", "SweepSummary", "plan", "read", "records", "sweep"]
