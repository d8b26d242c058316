"""Independent jobs on several processes or machines: one function, many arguments, results as they finish."""

from bacs.engine.held import Held
from bacs.engine.jobs import ENGINES, run
from bacs.engine.outcome import Outcome
from bacs.engine.place import HERE, Place

__all__ = ["ENGINES", "HERE", "Held", "Outcome", "Place", "run"]
