"""`bacs.calibrate`: an ensemble at the temperature at which its predictions are honest."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bacs import inputs, temperature
from bacs.agreement import Reference, observe
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.metrics import accuracy
from bacs.predictive import average

PROBE = 2048
"""Images that are enough to find a temperature without labels: more would change its second digit at most."""


def calibrate(
    ensemble: Ensemble,
    images: Images,
    labels: Tensor | np.ndarray | None = None,
    *,
    batch_size: int = 128,
    seed: int = 0,
) -> Ensemble:
    """The ensemble at the temperature of the best NLL on labelled source images, or without labels by agreement.

    Labels belong to images that the members have not learnt from: those they have learnt, they know too well. How often
    members agree and are right there is kept as the ensemble's `reference`, for estimates of accuracy elsewhere.
    Without labels a seeded draw of the images is enough, and members take turns at giving them
    (`bacs.temperature.by_agreement`).
    """
    if labels is None and len(ensemble) < 2:
        raise ValueError("labels must be given for a single member: it has nobody to agree with")
    probe = inputs.sample(images, PROBE, seed=seed) if labels is None else images
    rows = replace(ensemble, temperature=1.0).predict_members(probe, batch_size=batch_size, seed=seed)
    if labels is None:
        return replace(ensemble, temperature=temperature.by_agreement(rows, ensemble.reference))
    known = torch.as_tensor(labels)
    if known.shape != rows.shape[1:2]:
        raise ValueError(f"labels must be one class per image, shape [{rows.shape[1]}], got {list(known.shape)}")
    if known.is_floating_point() or known.min() < 0 or known.max() >= rows.shape[2]:
        raise ValueError(f"labels must be whole numbers 0..{rows.shape[2] - 1}, got {known.min()}..{known.max()}")
    return replace(ensemble, temperature=temperature.fit(rows, known), reference=_reference(rows, known))


def _reference(rows: Tensor, labels: Tensor) -> Reference | None:
    """How often members agree and are right; None for one, which has nobody to agree with."""
    predictive = average(rows)
    seen = observe(predictive)
    if seen.agreement is None or seen.vote_agreement is None:
        return None
    right = (predictive.labels == labels).double().mean()
    return Reference(
        len(labels), seen.agreement, seen.vote_agreement, float(right), accuracy(predictive.probabilities, labels)
    )
