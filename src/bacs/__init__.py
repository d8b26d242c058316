"""Bayesian test-time adaptation for PyTorch classifiers."""

from bacs import (
    agreement,
    corruptions,
    data,
    metrics,
    models,
    objectives,
    posteriors,
    predictions,
    pretrained,
    temperature,
    training,
)
from bacs.adaptation.statistics import Statistics
from bacs.architecture import Architecture
from bacs.control import choose
from bacs.drivers import Evaluation, adapt, evaluate, load, stream
from bacs.ensemble import Ensemble, Member
from bacs.errors import BacsError
from bacs.methods import METHODS, Method, Stream, calibrate
from bacs.predictions import predict_table
from bacs.preprocessing import Preprocessing

__version__ = "0.2.0"

__all__ = [
    "METHODS",
    "Architecture",
    "BacsError",
    "Ensemble",
    "Evaluation",
    "Member",
    "Method",
    "Preprocessing",
    "Statistics",
    "Stream",
    "adapt",
    "agreement",
    "calibrate",
    "choose",
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
    "temperature",
    "training",
]
