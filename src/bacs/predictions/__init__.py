"""Predictions as a table with a row for each image, and what adaptation did to them."""

from bacs.methods.moved import posterior_deviations
from bacs.predictions.summary import Summary, summarise
from bacs.predictions.table import Table, predict_table
from bacs.predictive import (
    Predictive,
    abstain,
    abstain_for,
    effective_classes,
    entropy,
    mutual_information,
    predictive_entropy,
)

__all__ = [
    "Predictive",
    "Summary",
    "Table",
    "abstain",
    "abstain_for",
    "effective_classes",
    "entropy",
    "mutual_information",
    "posterior_deviations",
    "predict_table",
    "predictive_entropy",
    "summarise",
]
