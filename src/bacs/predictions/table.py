"""`predict_table`: a row for each image, with what is predicted and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.predictions.writers import stage
from bacs.predictive import (
    Predictive,
    abstain,
    abstain_for,
    check_accuracy,
    check_coverage,
    mutual_information,
    predictive_entropy,
)


@dataclass(frozen=True, eq=False)
class Table:
    """Predictions, one row per image; entropies in nats."""

    index: np.ndarray  # place of the image in its source
    path: tuple[str, ...] | None
    class_index: np.ndarray
    class_name: tuple[str, ...] | None
    class_before: tuple[str, ...] | np.ndarray | None  # what was predicted before adaptation, where that is known
    confidence: np.ndarray  # probability of the predicted class
    predictive_entropy: np.ndarray  # = expected_entropy + mutual_information
    expected_entropy: np.ndarray  # what each member finds uncertain: the data
    mutual_information: np.ndarray  # where members disagree: the model
    abstain: np.ndarray  # True for the least confident
    probabilities: np.ndarray  # [images, classes]

    def __len__(self) -> int:
        return len(self.index)

    def columns(self, *, probabilities: bool = False) -> dict[str, Any]:
        """Name and values of each column, as they are written; without class names or paths, those are left out."""
        chosen = {name: values for name, values in vars(self).items() if values is not None}
        if not probabilities:
            del chosen["probabilities"]
        return chosen

    def write(self, path: str | Path, *, probabilities: bool = False, overwrite: bool = False) -> None:
        """Writes .parquet, .csv or .jsonl, whole or not at all; an existing file only with `overwrite`."""
        with stage(path, self.columns(probabilities=probabilities), overwrite=overwrite):
            pass


def predict_table(
    ensemble: Ensemble,
    images: Images,
    *,
    paths: Sequence[str] | None = None,
    coverage: float = 0.9,
    accuracy: float | None = None,
    batch_size: int = 128,
    seed: int = 0,
) -> Table:
    """Predictions of an ensemble for images in any form that `bacs.adapt` takes, in their order.

    Args:
        paths: a name for each image.
        coverage: the share of images to answer for; the least confident others are flagged in `abstain`.
        accuracy: flags instead as few as let the others reach this mean confidence, which of honest probabilities
            (method `auto`, temperature `agreement`) is the accuracy to be expected.
        batch_size: as in `Ensemble.predict`.
        seed: as in `Ensemble.predict`.
    """
    check_coverage(coverage)
    if accuracy is not None:
        check_accuracy(accuracy)
    predictive = ensemble.predictive(images, batch_size=batch_size, seed=seed)
    return tabulate(predictive, paths=paths, class_names=ensemble.class_names, coverage=coverage, accuracy=accuracy)


def tabulate(
    predictive: Predictive,
    *,
    before: Predictive | None = None,
    index: np.ndarray | None = None,
    paths: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    coverage: float = 0.9,
    accuracy: float | None = None,
) -> Table:
    """The table of predictions that were made already; `index` numbers the rows from 0 if None."""
    probabilities = predictive.probabilities.numpy()
    if paths is not None and len(paths) != len(probabilities):
        raise ValueError(f"paths must have one entry per image: {len(probabilities)} images, got {len(paths)}")
    predicted = probabilities.argmax(axis=1)
    confidence = probabilities.max(axis=1)
    return Table(
        index=np.arange(len(probabilities)) if index is None else index,
        path=None if paths is None else tuple(paths),
        class_index=predicted,
        class_name=None if class_names is None else tuple(class_names[number] for number in predicted),
        class_before=None if before is None else _classes(before.probabilities.numpy().argmax(axis=1), class_names),
        confidence=confidence,
        predictive_entropy=predictive_entropy(predictive).numpy(),
        expected_entropy=predictive.expected_entropy.numpy(),
        mutual_information=mutual_information(predictive).numpy(),
        abstain=abstain(confidence, coverage) if accuracy is None else abstain_for(confidence, accuracy),
        probabilities=probabilities,
    )


def _classes(numbers: np.ndarray, class_names: Sequence[str] | None) -> tuple[str, ...] | np.ndarray:
    return numbers if class_names is None else tuple(class_names[number] for number in numbers)
