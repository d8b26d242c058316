"""Methods of the paper over an ensemble: adapt (offline), stream (online), evaluate, load."""

from bacs.methods.calibrate import calibrate
from bacs.methods.catalogue import METHODS, Method
from bacs.methods.evaluate import Evaluation, evaluate
from bacs.methods.load import load
from bacs.methods.offline import adapt
from bacs.methods.online import Stream, stream

__all__ = ["METHODS", "Evaluation", "Method", "Stream", "adapt", "calibrate", "evaluate", "load", "stream"]
