"""Sweeps over shifts and methods: recipes to cells, one stored record a cell, on this machine or a cluster."""

from bacs.benchmark.cell import Cell
from bacs.benchmark.plan import plan
from bacs.benchmark.recipe import Recipe, read
from bacs.benchmark.store import records
from bacs.benchmark.sweep import Summary, sweep

__all__ = ["Cell", "Recipe", "Summary", "plan", "read", "records", "sweep"]
