"""Scores of a cell's ensemble at other temperatures than its own: the best of them shows what labels would buy."""

import numpy as np
from torch import Tensor

from bacs import metrics
from bacs.predictive import Average
from bacs.temperature import tempered

FACTORS = (0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Multiples of the cell's own temperature."""

MOST = 4_000_000
"""Probabilities of this scoring at most, so that it needs little memory: 4,000 images of 1,000 classes, all of ten."""


class Tempered:
    """The members' mean at every temperature, on its way."""

    def __init__(self) -> None:
        self._means = {factor: Average() for factor in FACTORS}

    def add(self, rows: Tensor) -> None:
        """Takes in the probabilities of one more member."""
        part = rows[: MOST // rows.shape[1]]
        for factor, mean in self._means.items():
            mean.add(tempered(part, factor))

    def scores(self, labels: np.ndarray) -> dict[str, list[float]]:
        """NLL and ECE by temperature."""
        means = [mean.result().probabilities for mean in self._means.values()]
        return {
            "temperature": list(self._means),
            "nll": [metrics.nll(rows, labels[: len(rows)]) for rows in means],
            "ece": [metrics.ece(rows, labels[: len(rows)]) for rows in means],
        }
