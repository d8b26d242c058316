"""`bacs.choose`: what to do with unlabelled images, with the figures behind it.

Statistics are tried: a probe of the images is predicted under several shares r of batch statistics, and the share at
which the members agree best wins, if it is better than none by more than chance. Whether weights are adapted follows
from a rule: where classes are mixed, batch statistics keep entropy from collapsing and large steps pay; where they are
not, nothing does. Whether it did help is asked afterwards (`control.auto`).
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bacs import inputs
from bacs.adaptation.statistics import Statistics
from bacs.control import probe as probing
from bacs.control.probe import Seen
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.parameters import batch_norm_layers
from bacs.posteriors import flat
from bacs.posteriors.scale import posterior_weight_for

PROBE = 1024
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Shares of batch statistics that are tried, each on half of the probe: 2.5 passes over it, an epoch of BACS has 3."""

ANCHOR = 0.25
MIXED = 0.7
"""Classes are mixed if the anchor's effective classes are at least this part of the possible ones."""

ENOUGH = 64
"""Images below which weights stay as they are."""

RATE, RATE_STEPS = 1e-2, 16
"""The rate that was settled, for so many steps; more steps share the same way."""

PULL = 0.3
OBJECTIVE = {"objective": "information_maximisation", "objective_temperature": 5.0}


@dataclass(frozen=True)
class Candidate:
    """One share of batch statistics, and what the probe showed under it."""

    batch_weight: float
    agreement: float
    drift: float
    score: float
    effective_classes: float
    confidence: float


@dataclass(frozen=True)
class Choice:
    """What to do, as data: arguments of `bacs.adapt`, the candidates behind them, and the reasons in words."""

    batch_weight: float  # of predictions if no weight is adapted
    adapts: bool
    arguments: dict[str, Any]  # of bacs.adapt, if weights are adapted
    candidates: tuple[Candidate, ...]
    reasons: tuple[str, ...]
    images: int  # of the probe
    mirrored: bool  # whether views were asked instead of members
    seen: dict[float, Seen] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        head = "batch weight  agreement  drift  score  effective classes  confidence"
        rows = [
            f"{'>' if row.batch_weight == self.batch_weight else ' '} {row.batch_weight:<11g} {row.agreement:>9.3f}"
            f" {row.drift:>6.3f} {row.score:>6.3f} {row.effective_classes:>18.2f} {row.confidence:>11.3f}"
            for row in self.candidates
        ]
        return "\n".join([*self.reasons, head, *rows] if rows else self.reasons)


def choose(
    ensemble: Ensemble,
    images: Images,
    *,
    epochs: int | float = 1,
    batch_size: int = 64,
    probe: int = PROBE,
    seed: int = 0,
) -> Choice:
    """What to do with these images, decided without labels on a seeded probe of at most `probe` of them.

    `epochs` and `batch_size` are those of the adaptation that it is chosen for.
    """
    if probe < 2:
        raise ValueError(f"probe must be at least 2 images, got {probe}")
    ensemble.check_inputs(images, batch_size)
    sampled = inputs.sample(images, probe // 2, seed=seed)
    count = inputs.count(sampled)
    layers = [layer for member in ensemble.members for layer in batch_norm_layers(member.model)]
    if not layers:
        return _leave("there are no batch-norm layers, so there are no statistics to choose", count)
    if any(layer.running_mean is None for layer in layers):
        return _leave("batch norm has no statistics from training, so there is nothing to choose", count)
    if count < 2:
        return _leave("one image says nothing about a shift: the ensemble predicts it as it is", count)
    mirrored = len(ensemble) == 1
    if mirrored and not probing.can_be_mirrored(sampled):
        return _leave("a single network of rows or tokens has nobody to agree with", count)
    found = _try(ensemble, sampled, batch_size, seed, mirrored=mirrored)
    if not mirrored and _near_copies(found):
        if not probing.can_be_mirrored(sampled):
            return _leave("members are near copies of each other, so that their agreement tells nothing", count)
        mirrored = True
        found = _try(ensemble, sampled, batch_size, seed, mirrored=True)
    return _decide(ensemble, found, inputs.count(images), count, epochs, batch_size, mirrored)


def _leave(reason: str, count: int) -> Choice:
    return Choice(0.0, False, {}, (), (reason,), count, False)


def _try(ensemble: Ensemble, sampled: Images, batch_size: int, seed: int, *, mirrored: bool) -> dict[float, Seen]:
    found = {}
    for weight in WEIGHTS:
        under = replace(ensemble, statistics=Statistics(weight))
        found[weight] = probing.look(under, sampled, batch_size=batch_size, seed=seed, mirrored=mirrored)
    return found


def _near_copies(found: dict[float, Seen]) -> bool:
    return all((seen.figures.agreement or 0) > probing.NEAR_COPIES for seen in found.values())


def _decide(
    ensemble: Ensemble,
    found: dict[float, Seen],
    total: int,
    count: int,
    epochs: int | float,
    batch_size: int,
    mirrored: bool,
) -> Choice:
    anchor, source = found[ANCHOR], found[0.0]
    candidates = tuple(
        Candidate(
            weight,
            float(seen.figures.agreement or 0),
            probing.drift(seen, anchor),
            probing.score(seen, anchor),
            seen.figures.effective_classes,
            seen.figures.confidence,
        )
        for weight, seen in found.items()
    )
    best = max(candidates, key=lambda row: row.score)
    better, error = probing.gain(found[best.batch_weight], anchor, source)
    who = "views of a picture" if mirrored else "members"
    if best.batch_weight == 0:
        weight = 0.0
        reasons = [f"source statistics: {who} agree best under them, in {100 * best.agreement:.1f} %"]
    elif better <= error:
        weight = 0.0
        reasons = [
            f"source statistics: {who} agree better under {best.batch_weight:g} of the batch's, but by no more than "
            f"chance ({better:+.3f} ± {error:.3f})"
        ]
    else:
        weight = best.batch_weight
        reasons = [
            f"{weight:g} of batch statistics: {who} agree in {100 * best.agreement:.1f} % instead of "
            f"{100 * candidates[0].agreement:.1f} %"
        ]
    classes = (
        source.predictive.probabilities.shape[1] if ensemble.class_mask is None else int(ensemble.class_mask.sum())
    )
    mixed = anchor.figures.counted_classes >= MIXED * classes
    adapts = mixed and total >= ENOUGH and weight > 0
    steps = max(1, round(epochs * total / batch_size))
    if adapts:
        reasons.append(
            f"classes are mixed ({anchor.figures.counted_classes:.1f} of {classes}): weights are adapted too"
        )
    elif not mixed:
        reasons.append(f"few classes ({anchor.figures.counted_classes:.1f} of {classes}): weights stay as they are")
    elif total < ENOUGH:
        reasons.append(f"{total} images are too few to adapt weights")
    else:
        reasons.append("nothing has shifted that members could tell: weights stay as they are")
    arguments = _arguments(ensemble, steps) if adapts else {}
    return Choice(weight, adapts, arguments, candidates, tuple(reasons), count, mirrored, found)


def _arguments(ensemble: Ensemble, steps: int) -> dict[str, Any]:
    """Of bacs.adapt: the objective, a rate whose way does not grow with the steps, a pull that fits the posterior."""
    rate = RATE * min(1.0, RATE_STEPS / steps)
    if any(isinstance(member.posterior, flat.Flat) for member in ensemble.members):
        return {"method": "tent", "learning_rate": rate, **OBJECTIVE}
    weights = [posterior_weight_for(member.posterior, PULL, learning_rate=RATE) for member in ensemble.members]
    return {
        "method": "bacs",
        "learning_rate": rate,
        "posterior_weight": float(np.exp(np.mean(np.log(weights)))),
        **OBJECTIVE,
    }
