"""`bacs.choose`: what to do with unlabelled images, with the figures behind it.

Statistics are tried: a probe of the images is predicted under several shares r of batch statistics, and the share at
which the members agree best wins, if it is better than none by more than chance. Whether weights are adapted follows
from a rule: where classes are mixed, batch statistics keep entropy from collapsing and large steps pay; where they are
not, nothing does. Whether it did help is asked afterwards (`control.auto`, `control.guarded`).
"""

from dataclasses import dataclass, field
from typing import Any

from bacs import inputs
from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.candidates import Candidate
from bacs.control.probe import Votes
from bacs.control.steps import ENOUGH, arguments_for
from bacs.ensemble import Ensemble, check_ensemble
from bacs.inputs import Images
from bacs.methods.settings import check_epochs

PROBE = 1024
"""Images to look at. Every share is tried on half of them: 2.5 passes over the probe, where an epoch of BACS has 3."""


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
    seen: dict[float, Votes] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        head = "batch weight  agreement  collapse  score  counted classes  confidence"
        rows = [
            f"{'>' if row.batch_weight == self.batch_weight else ' '} {row.batch_weight:<11g} {row.agreement:>9.3f}"
            f" {row.collapse:>9.3f} {row.score:>6.3f} {row.counted_classes:>16.2f} {row.confidence:>11.3f}"
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
    check_ensemble(ensemble)
    check_epochs(epochs)
    inputs.check_seed(seed)
    inputs.check_batch_size(probe, "probe")
    if probe < 2:
        raise ValueError(f"probe must be at least 2 images, got {probe}")
    ensemble.check_inputs(images, batch_size)
    mirrored = len(ensemble) == 1
    sampled = inputs.sample(images, max(2, probe // (4 if mirrored else 2)), seed=seed)  # views are two passes each
    count = inputs.count(sampled)
    missing = trying.nothing_to_try(ensemble)
    if missing is not None:
        return _change_nothing(missing, count)
    if count < 2:
        return _change_nothing("one image says nothing about a shift: the ensemble predicts it as it is", count)
    if mirrored and not probing.can_be_mirrored(sampled):
        return _change_nothing("a single network of rows or tokens has nobody to agree with", count)
    how = {"batch_size": batch_size, "seed": seed}
    found = trying.try_weights(ensemble, sampled, **how, mirrored=mirrored)
    if not mirrored and trying.are_near_copies(found):
        if not probing.can_be_mirrored(sampled):
            return _change_nothing(
                "members are near copies of each other, so that their agreement tells nothing", count
            )
        mirrored = True
        found = trying.try_weights(ensemble, sampled, **how, mirrored=True)
    weight, reason = trying.pick(found, mirrored=mirrored)
    total = inputs.count(images)
    steps = max(1, round(epochs * total / batch_size))
    adapts, why = _decide_on_weights(ensemble, trying.basis_of_count(found, weight), weight, total)
    return Choice(
        weight,
        adapts,
        arguments_for(ensemble, steps) if adapts else {},
        trying.candidates_of(found),
        (reason, why),
        count,
        mirrored,
        found,
    )


def _change_nothing(reason: str, count: int) -> Choice:
    return Choice(0.0, False, {}, (), (reason,), count, False)


def _decide_on_weights(ensemble: Ensemble, seen: Votes, batch_weight: float, total: int) -> tuple[bool, str]:
    """Whether weights are adapted, and why."""
    possible = trying.possible_classes(ensemble, seen.classes)
    counted = f"{seen.counted_classes:.1f} of {possible}"
    if trying.part_of_even(seen, possible) < trying.MIXED:
        return False, f"few classes ({counted}): weights stay as they are"
    if total < ENOUGH:
        return False, f"{total} images are too few to adapt weights"
    if batch_weight == 0:
        return False, "nothing has shifted that members could tell: weights stay as they are"
    return True, f"classes are mixed ({counted}): weights are adapted too"
