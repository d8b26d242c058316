"""Several members of one checkpoint by new last layers."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bacs.adaptation.forward import forward
from bacs.adaptation.statistics import SOURCE, using
from bacs.ensemble import Member
from bacs.errors import unknown_name
from bacs.methods.prepare import copy_member, working_copy, write_back
from bacs.parameters import read
from bacs.posteriors import recentred
from bacs.pretrained import source_images
from bacs.threads import OnBatch
from bacs.training.augment import Augmentation, Identity
from bacs.training.settings import TrainingObjective, cross_entropy

NO_AUGMENTATION = Identity()


def with_new_head(
    member: Member,
    images: Any,
    labels: Tensor | np.ndarray,
    *,
    head: str | None = None,
    steps: int = 300,
    learning_rate: float = 0.05,
    batch_size: int = 128,
    momentum: float = 0.9,
    weight_decay: float = 5e-4,
    augment: Augmentation = NO_AUGMENTATION,
    objective: TrainingObjective = cross_entropy,
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
) -> Member:
    """The member with a last layer that was drawn anew and trained on source images; all else stays as it is.

    The learning rate falls to zero in a straight line. The posterior keeps its width and moves to the new weights.

    Args:
        head: name of the last layer as in `model.named_modules()`; the last nn.Linear if None.
        seed: initial weights of the layer, order of the images, augmentation.
        on_batch: hears the number of images of every step, for progress bars.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    pixels, targets = source_images.check_source(member, images, labels)
    home = copy_member(member, None)
    ours = working_copy(home)
    layer = find_head(ours.model, head)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer.reset_parameters()  # pyrefly: ignore[not-callable]
    ours.model.requires_grad_(False)
    layer.requires_grad_(True)
    optimizer = torch.optim.SGD(layer.parameters(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
    generator = torch.Generator().manual_seed(seed)
    order = source_images.draw_positions(len(targets), steps * batch_size, generator)
    uniforms = torch.rand(len(order), augment.draws, generator=generator)
    with using(ours.model, SOURCE):
        for step, (chosen, draws) in enumerate(zip(order.split(batch_size), uniforms.split(batch_size), strict=True)):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            logits = forward(ours.model, ours.prepare(augment(pixels, chosen, draws)))
            optimizer.zero_grad(set_to_none=True)
            objective(logits.float(), targets[chosen].to(logits.device)).backward()
            optimizer.step()
            on_batch(len(chosen))
    write_back(home.model, ours.model)
    return replace(home, model=home.model.eval(), posterior=recentred(member.posterior, read(home.model)))


def find_head(model: nn.Module, name: str | None) -> nn.Module:
    """The last layer by name, or the last nn.Linear."""
    layers = {each: layer for each, layer in model.named_modules() if hasattr(layer, "reset_parameters")}
    if name is not None:
        if name not in layers:
            raise unknown_name("head", name, list(layers))
        return layers[name]
    linear = [layer for layer in layers.values() if isinstance(layer, nn.Linear)]
    if not linear:
        raise ValueError(f"{type(model).__name__} has no nn.Linear: name its last layer by head=")
    return linear[-1]
