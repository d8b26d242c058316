"""What is told of each image, whatever the protocol."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bacs.agreement import per_image
from bacs.predictive import Predictive, mutual_information, predictive_entropy


class Answer(NamedTuple):
    """The predictions for one request, and which state of the stream they are of."""

    predictive: Predictive
    threshold: float
    life: str  # of this process: after a kill the steps since the last save are counted anew
    step: int
    frozen: bool

    def state(self) -> dict[str, Any]:
        """Which stream answered: equal states gave equal answers to equal batches."""
        return {"life": self.life, "step": self.step, "frozen": self.frozen}


def columns(answer: Answer) -> dict[str, np.ndarray]:
    """The figures of a request, an entry for each image. `agreement` is left out where one member is alone."""
    predictive = answer.predictive
    confidence, predicted = predictive.probabilities.max(dim=-1)
    found = {
        "class_index": predicted,
        "confidence": confidence,
        "predictive_entropy": predictive_entropy(predictive),
        "expected_entropy": predictive.expected_entropy,
        "mutual_information": mutual_information(predictive),
        "abstain": confidence < answer.threshold,
    }
    if len(predictive.labels) > 1:
        found["agreement"] = per_image(predictive.labels)
    return {name: values.numpy() for name, values in found.items()}


def rows(answer: Answer, class_names: Sequence[str] | None) -> list[dict[str, Any]]:
    """The same, a row for each image, with names and the threshold."""
    lists = {name: values.tolist() for name, values in columns(answer).items()}
    found = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    for row in found:
        row["class_name"] = None if class_names is None else class_names[row["class_index"]]
        row["threshold"] = answer.threshold
        row.setdefault("agreement", None)
    return found
