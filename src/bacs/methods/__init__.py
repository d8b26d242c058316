"""Methods over an ensemble, each with its settings given: rows, adapt (offline), stream (online), calibrate."""

from bacs.methods.begin import stream
from bacs.methods.calibrate import calibrate
from bacs.methods.catalogue import METHODS, Method
from bacs.methods.offline import adapt
from bacs.methods.online import Stream

__all__ = ["METHODS", "Method", "Stream", "adapt", "calibrate", "stream"]
