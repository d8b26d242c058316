"""Training of members: fit, or three lines in a loop of your own (posterior init, update, at_mean)."""

from bacs.training.augment import Identity, PadCropFlip
from bacs.training.fit import fit, initialised
from bacs.training.loop import EpochLog
from bacs.training.mean import at_mean
from bacs.training.schedule import Constant, Cosine, Linear
from bacs.training.settings import cross_entropy

__all__ = [
    "Constant",
    "Cosine",
    "EpochLog",
    "Identity",
    "Linear",
    "PadCropFlip",
    "at_mean",
    "cross_entropy",
    "fit",
    "initialised",
]
