"""`bacs.stream`: a stream from its start, by a method with its settings."""

import torch
from torch import Tensor

from bacs.ensemble import Ensemble
from bacs.methods.catalogue import Method
from bacs.methods.online import Stream
from bacs.methods.prepare import with_class_mask
from bacs.methods.settings import Settings


def stream(
    ensemble: Ensemble,
    method: str | Method = "auto",
    *,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    momentum: float = 0.9,
    optimizer: str = "sgd",
    posterior_step: str = "proximal",
    min_variance: float = 1e-12,
    objective: str | None = None,
    objective_temperature: float = 1.0,
    batch_weight: float | None = None,
    statistics: str = "source",
    view: str = "mirrored",
    temperature: float | str | None = None,
    reset_every: int | None = None,
    class_mask: Tensor | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    compile: bool = False,
) -> Stream:
    """A stream that predicts and adapts batch by batch; arguments as in `bacs.adapt`.

    `statistics="running"` suits batches of 1 to 16 images: averages that begin at the source statistics take in a share
    `batch_weight` of each batch (0.1 if left out). `temperature="agreement"` follows the last 512 images.
    `reset_every=1000` takes weights, statistics and the optimiser's memory back to the start after every 1000 steps.
    """
    settings = Settings(
        learning_rate=learning_rate,
        posterior_weight=posterior_weight,
        momentum=momentum,
        optimizer=optimizer,
        posterior_step=posterior_step,
        min_variance=min_variance,
        objective=objective,
        objective_temperature=objective_temperature,
        batch_weight=batch_weight,
        statistics=statistics,
        view=view,
        temperature=temperature,
        reset_every=reset_every,
    )
    return Stream(with_class_mask(ensemble, class_mask), method, settings, device, compile, seed)
