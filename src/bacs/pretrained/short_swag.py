"""`short_swag`: a few hundred more steps of training at a constant rate, for a checkpoint without a trajectory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bacs.ensemble import Member
from bacs.methods.prepare import working_copy
from bacs.posteriors import posterior_scale_for
from bacs.pretrained import source_images
from bacs.threads import OnBatch
from bacs.training.augment import Augmentation, Identity, take
from bacs.training.loop import EpochLog, collects, start, train_epoch
from bacs.training.schedule import Constant
from bacs.training.settings import TrainingObjective, TrainingSettings, cross_entropy

NO_AUGMENTATION = Identity()
COLLECT_EVERY = 10
BATCH_SIZE = 128


def short_swag(
    member: Member,
    images: Any,
    labels: Tensor | np.ndarray,
    *,
    steps: int = 300,
    collect_every: int = COLLECT_EVERY,
    collect_from: float = 0.25,
    learning_rate: float = 0.01,
    batch_size: int = BATCH_SIZE,
    momentum: float = 0.9,
    weight_decay: float = 5e-4,
    augment: Augmentation = NO_AUGMENTATION,
    objective: TrainingObjective = cross_entropy,
    posterior: str = "swag_diag",
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
    on_collect: Callable[[EpochLog], None] = lambda log: None,
) -> Member:
    """A member at the mean of a short SWAG trajectory that begins at the given one's weights; that stays as it is.

    Its posterior_scale makes the default posterior_weight mean the usual pull: a short trajectory is far narrower than
    that of a whole training.

    Args:
        images: source images, uint8 NHWC or what the model takes; the more of the training set, the better.
        labels: theirs.
        steps: of SGD at the constant `learning_rate`, which should be that of the end of training or a bit above.
        collect_every: steps between two iterates of the trajectory.
        collect_from: part of the steps after which iterates count: the first ones still leave the old minimum.
        augment: see `bacs.training.augment`. By default images are taken as they are, which is how they are met later:
            the batch statistics of shifted images with black edges are others.
        posterior: `swag_diag` or `swag_low_rank`.
        seed: another seed takes another way: several make an ensemble of one checkpoint.
        on_batch: hears the number of images of every step, for progress bars.
        on_collect: hears loss and accuracy between two iterates.
    """
    rounds = steps // max(collect_every, 1)  # an epoch of the loop is the stretch between two iterates
    if collect_every < 1 or rounds < 1:
        raise ValueError(f"collect_every must be 1..steps={steps}, got {collect_every}")
    settings = TrainingSettings(
        epochs=rounds,
        batch_size=batch_size,
        learning_rate=learning_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        schedule=Constant(),
        augment=augment,
        objective=objective,
        posterior=posterior,
        collect_from=collect_from,
        seed=seed,
    )
    kept = sum(collects(done, collect_every, settings) for done in range(1, rounds * collect_every + 1))
    if kept < 2:
        raise ValueError(
            f"a posterior needs at least 2 iterates, got {kept} of steps={steps}, collect_every={collect_every}, "
            f"collect_from={collect_from:.3g}"
        )
    pixels, targets = source_images.check_source(member, images, labels)
    ours = working_copy(member)
    state = start(ours.model, settings)
    generator = torch.Generator().manual_seed(seed)
    order = source_images.draw_positions(len(targets), rounds * collect_every * batch_size, generator)
    for stretch in order.split(collect_every * batch_size):
        seen = take(pixels, stretch)
        on_collect(train_epoch(state, seen, targets[stretch], settings, ours.preprocessing, on_batch=on_batch))
    refresh = source_images.sample_images(pixels, source_images.REFRESH, seed)
    done = source_images.move_to_mean(ours, state.posterior, refresh)
    return replace(done, posterior_scale=posterior_scale_for(done.posterior))
