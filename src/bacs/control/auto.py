"""`method="auto"`: choose, adapt, and then ask whether it helped; what did not is taken back."""

from dataclasses import replace
from functools import wraps
from typing import Any

from bacs import inputs, methods, temperature
from bacs.agreement import Estimate, estimate, observe
from bacs.control import probe as probing
from bacs.control.choose import ANCHOR, PROBE, Choice, choose
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.methods.catalogue import Method
from bacs.methods.prepare import with_class_mask
from bacs.predictive import average

AUTO = "auto"
TAKEN = ("epochs", "batch_size", "class_mask", "seed", "device", "compile", "on_batch")
"""Arguments of `bacs.adapt` that leave something to choose."""


@wraps(methods.adapt)
def adapt(ensemble: Ensemble, images: Images, method: str | Method = "bacs", **arguments: Any) -> Ensemble:
    if method != AUTO:
        return methods.adapt(ensemble, images, method, **arguments)
    for name in arguments:
        if name not in TAKEN:
            raise ValueError(f"{name} must be left out with method 'auto', which chooses it")
    return adapt_by_choice(ensemble, images, **arguments)


def adapt_by_choice(ensemble: Ensemble, images: Images, **given: Any) -> Ensemble:
    """The ensemble under what `choose` chose, if that is better than what it came from by the members' own word."""
    arguments: dict[str, Any] = {"batch_size": 64, "seed": 0} | given
    size, seed = arguments["batch_size"], arguments["seed"]
    source = with_class_mask(ensemble, arguments.get("class_mask"))
    choice = choose(source, images, epochs=arguments.get("epochs", 1), batch_size=size, seed=seed)
    device = {"device": arguments.get("device")}
    still = methods.adapt(source, images, "bn", batch_weight=choice.batch_weight, batch_size=size, seed=seed, **device)
    result, reasons = still, list(choice.reasons)
    if choice.adapts:
        adapted = methods.adapt(source, images, **arguments | choice.arguments)
        sampled = inputs.sample(images, PROBE // 2, seed=seed)
        after = probing.look(adapted, sampled, batch_size=size, seed=seed, mirrored=choice.mirrored)
        better, _ = probing.gain(after, choice.seen[ANCHOR], choice.seen[choice.batch_weight])
        if better > 0:
            result = adapted
            reasons.append(f"adapted weights agree better ({better:+.3f}) and are kept")
        else:
            reasons.append(f"adapted weights agree no better ({better:+.3f}) and were taken back")
    return _tempered(result, images, choice, tuple(reasons), size, seed)


def _tempered(
    result: Ensemble, images: Images, choice: Choice, reasons: tuple[str, ...], size: int, seed: int
) -> Ensemble:
    """The ensemble at the temperature at which it is as confident as it is estimated to be right."""
    about: dict[str, Any] = {"method": AUTO, "reasons": list(reasons), "batch_weight": choice.batch_weight}
    about |= {"candidates": [vars(row) for row in choice.candidates]}
    known = dict(result.adaptation or {})
    if len(result) > 1 and choice.candidates:
        guess, warmth = confident_as_right(result, images, size, seed)
        result = replace(result, temperature=warmth)
        about |= {"estimate": guess._asdict(), "temperature": warmth}
    return replace(result, adaptation=known | about)


def confident_as_right(result: Ensemble, images: Images, size: int, seed: int) -> tuple[Estimate, float]:
    """The estimated accuracy, and the temperature at which mean confidence equals that of the ensemble."""
    sampled = inputs.sample(images, PROBE, seed=seed)
    rows = replace(result, temperature=1.0).predict_members(sampled, batch_size=size, seed=seed)
    guess = estimate(observe(average(rows)), rows.shape[1], result.reference)
    return guess, temperature.as_confident_as(guess.ensemble, rows)
