"""Bayesian test-time adaptation for PyTorch classifiers."""

from bacs import corruptions, data, metrics, models, objectives, posteriors, predictions, pretrained, training
from bacs.architecture import Architecture
from bacs.ensemble import Ensemble, Member
from bacs.errors import BacsError
from bacs.methods import METHODS, Evaluation, Method, Stream, adapt, evaluate, load, stream
from bacs.predictions import predict_table
from bacs.preprocessing import Preprocessing

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Architecture",
    "BacsError",
    "Ensemble",
    "Evaluation",
    "Member",
    "Method",
    "Preprocessing",
    "Stream",
    "adapt",
    "corruptions",
    "data",
    "evaluate",
    "load",
    "metrics",
    "models",
    "objectives",
    "posteriors",
    "predict_table",
    "predictions",
    "pretrained",
    "stream",
    "training",
]
