"""Where batches come from and predictions go: adapt, stream, evaluate, compare, load, by a method or by choice."""

from bacs.drivers.adapt import adapt
from bacs.drivers.compare import BeforeAndAfter, compare
from bacs.drivers.evaluate import Evaluation, evaluate
from bacs.drivers.load import load
from bacs.drivers.stream import stream

__all__ = ["BeforeAndAfter", "Evaluation", "adapt", "compare", "evaluate", "load", "stream"]
