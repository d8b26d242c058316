"""`method="auto"` offline: choose, adapt, and then ask whether it helped; what did not is taken back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from bacs import inputs, methods, temperature
from bacs.agreement import Estimate, estimate, observe
from bacs.control import probe as probing
from bacs.control.candidates import ANCHOR
from bacs.control.choose import PROBE, Choice, choose
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.methods.prepare import copy_member, with_class_mask
from bacs.methods.settings import NAMES
from bacs.predictive import average

OPEN = ("epochs", "batch_size", "class_mask", "seed", "device", "compile", "on_batch")
"""Arguments of `bacs.adapt` that leave something to choose."""

BACK = (1.0, 0.5)
"""Parts of the way from home that are asked for, one after the other, before all of it is taken back."""


def check_auto_arguments(arguments: dict[str, Any], open_ones: tuple[str, ...] = OPEN) -> None:
    """Raises for an argument that `auto` chooses by itself, and for one that nobody knows."""
    for name in arguments:
        if name not in (*OPEN, *open_ones, *NAMES):
            raise TypeError(f"got an unexpected keyword argument {name!r}; method 'auto' takes {', '.join(open_ones)}")
        if name not in open_ones:
            raise ValueError(f"{name} must be left out with method 'auto', which chooses it; method='bacs' takes it")


def adapt_by_choice(
    ensemble: Ensemble, images: Images, *, adapt: Callable[..., Ensemble] = methods.adapt, **given: Any
) -> Ensemble:
    """The ensemble under what `choose` chose, if that is better than what it came from by the members' own word.

    `adapt` stands in for `methods.adapt` where passes over all images are made elsewhere; what looks at a probe alone
    is done here.
    """
    check_auto_arguments(given)
    arguments: dict[str, Any] = {"epochs": 1, "batch_size": 64, "seed": 0} | given
    how = {"batch_size": arguments["batch_size"], "seed": arguments["seed"]}
    source = with_class_mask(ensemble, arguments.get("class_mask"))
    choice = choose(source, images, epochs=arguments["epochs"], **how)
    still = methods.adapt(source, images, "bn", batch_weight=choice.batch_weight, **how, device=arguments.get("device"))
    result, reasons = still, choice.reasons
    if choice.adapts:
        adapted = adapt(source, images, **arguments | choice.arguments)
        result, reason = keep_what_helped(still, adapted, images, choice, **how)
        reasons = *reasons, reason
    elif "on_batch" in given:  # who counts on these passes need not wait for them
        given["on_batch"](round(arguments["epochs"] * inputs.count(images) * len(source)))
    about: dict[str, Any] = {"method": "auto", "reasons": list(reasons), "batch_weight": result.statistics.batch_weight}
    about |= {"candidates": [vars(row) for row in choice.candidates]}
    if len(result) > 1 and choice.candidates:
        guess, warmth = estimate_and_temperature(result, images, **how)
        result = replace(result, temperature=warmth)
        about |= {"estimate": guess._asdict(), "temperature": warmth}
    return replace(result, adaptation=dict(result.adaptation or {}) | about)


def keep_what_helped(
    still: Ensemble, adapted: Ensemble, images: Images, choice: Choice, *, batch_size: int, seed: int
) -> tuple[Ensemble, str]:
    """As much of the adapted weights as agrees better than statistics alone do: all of the way, half of it, or none."""
    sampled = inputs.sample(images, choice.images, seed=seed)
    gains = []
    for part in BACK:
        result = adapted if part == 1 else part_of_the_way(still, adapted, part)
        seen = probing.look(result, sampled, batch_size=batch_size, seed=seed, mirrored=choice.mirrored)
        better, _ = probing.gain(seen, choice.seen[ANCHOR], choice.seen[choice.batch_weight])
        gains.append(f"{better:+.3f}")
        if better > 0:
            kept = (
                "and are kept" if part == 1 else f"at {part:g} of their way, and are kept there ({gains[0]} at its end)"
            )
            return result, f"adapted weights agree better ({better:+.3f}) {kept}"
    return still, f"adapted weights agree no better ({', '.join(gains)}) and were taken back"


@torch.no_grad()
def part_of_the_way(home: Ensemble, adapted: Ensemble, part: float) -> Ensemble:
    """Weights (1 - part) home + part adapted."""
    members = [copy_member(member, None) for member in adapted.members]
    for member, start in zip(members, home.members, strict=True):
        for own, theirs in zip(member.model.parameters(), start.model.parameters(), strict=True):
            if not torch.equal(own, theirs):  # a constant may be expanded, which cannot be written to
                own.copy_(torch.lerp(theirs.to(own), own, part))
    return replace(adapted, members=members)


def estimate_and_temperature(result: Ensemble, images: Images, *, batch_size: int, seed: int) -> tuple[Estimate, float]:
    """The estimated accuracy, and the temperature that makes the ensemble honest, both by its members' agreement."""
    sampled = inputs.sample(images, PROBE, seed=seed)
    rows = replace(result, temperature=1.0).predict_members(sampled, batch_size=batch_size, seed=seed)
    guess = estimate(observe(average(rows)), rows.shape[1], result.reference)
    return guess, temperature.by_agreement(rows, result.reference)
