"""`bacs.training.fit`: one member, from a fresh model to a posterior."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bacs.ensemble import Member
from bacs.layout import arrange
from bacs.preprocessing import Preprocessing
from bacs.threads import OnBatch
from bacs.training import shard
from bacs.training.augment import Augmentation, PadCropFlip
from bacs.training.loop import EpochLog, check_collection, start, train_epoch
from bacs.training.mean import at_mean
from bacs.training.schedule import Linear, Schedule
from bacs.training.settings import TrainingObjective, TrainingSettings, cross_entropy

PAPER_SCHEDULE = Linear()
CROP_AND_FLIP = PadCropFlip()


def fit(
    model: nn.Module,
    images: np.ndarray | Tensor,
    labels: np.ndarray | Tensor,
    *,
    epochs: int,
    batch_size: int = 128,
    learning_rate: float = 0.1,
    momentum: float = 0.9,
    nesterov: bool = False,
    weight_decay: float = 5e-4,
    decay_norm: bool = True,
    schedule: Schedule = PAPER_SCHEDULE,
    augment: Augmentation = CROP_AND_FLIP,
    objective: TrainingObjective = cross_entropy,
    posterior: str = "swag_diag",
    collect_from: float = 160 / 300,
    collections_per_epoch: int = 1,
    preprocessing: Preprocessing | None = None,
    precision: str = "float32",
    seed: int = 0,
    device: torch.device | str | None = None,
    on_batch: OnBatch = lambda count: None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
) -> Member:
    """A member at its posterior's mean, with fresh batch-norm statistics. The model is trained in place.

    Args:
        images: uint8 NHWC.
        schedule: progress in 0..1 -> factor of `learning_rate`; see `bacs.training.schedule`.
        augment: what happens to a batch of images; see `bacs.training.augment`.
        objective: (logits, labels) -> scalar.
        posterior: which kind the iterates of SGD are folded into.
        collect_from: part of the training after which iterates count.
        collections_per_epoch: how many iterates each epoch gives, the last at its end.
        preprocessing: mean and deviation by channel; those of `images` if None.
        precision: `bfloat16` runs the forward pass under autocast.
        seed: order, augmentation and dropout. Initial weights are the model's own: see `initialised`.
        on_batch: hears the number of images of every step, for progress bars.
        on_epoch: hears loss, accuracy and speed of every epoch.
    """
    settings = TrainingSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
        decay_norm=decay_norm,
        schedule=schedule,
        augment=augment,
        objective=objective,
        posterior=posterior,
        collect_from=collect_from,
        collections_per_epoch=collections_per_epoch,
        precision=precision,
        seed=seed,
    )
    pixels, targets = as_training_data(images, labels)
    check_collection(settings, len(targets))
    used = preprocessing or preprocessing_of(pixels)
    mine = shard.current_shard()
    state = start(model if device is None else model.to(device), settings, mine)
    while state.epoch < epochs:
        on_epoch(train_epoch(state, pixels, targets, settings, used, shard=mine, on_batch=on_batch))
    # Back to plain memory: a checkpoint would not keep the other layout, and both must predict the same bits.
    arrange(model, torch.contiguous_format)
    return at_mean(model, state.posterior, pixels, used, batch_size=batch_size, seed=seed)


def initialised(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """`build()` with random initial weights that depend on `seed` alone; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def as_training_data(images: Any, labels: np.ndarray | Tensor) -> tuple[Any, Tensor]:
    """Images as a uint8 NHWC tensor (or as the lazy sequence they are) and int64 labels, one each."""
    if isinstance(images, np.ndarray) and not images.flags.writeable:
        images = images.copy()  # torch warns of read-only memory
    pixels = torch.from_numpy(images) if isinstance(images, np.ndarray) else images
    if isinstance(pixels, Tensor) and pixels.dtype != torch.uint8:
        raise ValueError(f"images must be uint8, got {pixels.dtype}")
    if len(pixels.shape) != 4:
        raise ValueError(f"images must be [batch, height, width, channels], got {list(pixels.shape)}")
    targets = as_labels(labels, len(pixels))
    if len(targets) < 2:
        raise ValueError(f"images must hold at least 2 images to train on, got {len(targets)}")
    return pixels, targets


def as_labels(labels: np.ndarray | Tensor, count: int) -> Tensor:
    """Int64 labels, one for each of so many images."""
    targets = torch.as_tensor(labels)
    if targets.ndim != 1 or targets.is_floating_point() or len(targets) != count:
        raise ValueError(
            f"labels must be whole numbers, one per image: {count} images, labels {list(targets.shape)} of "
            f"{targets.dtype}"
        )
    return targets.long()


def preprocessing_of(images: Tensor) -> Preprocessing:
    """Mean and standard deviation of the images by channel, on the scale 0..1, and their size."""
    if not isinstance(images, Tensor):
        raise ValueError("preprocessing must be given for images that are read lazily from files")
    counts = [torch.bincount(channel.flatten(), minlength=256).double() for channel in images.unbind(dim=3)]
    value = torch.arange(256, dtype=torch.float64) / 255
    means = [float((count * value).sum() / count.sum()) for count in counts]
    deviations = [
        float(((count * (value - mean) ** 2).sum() / count.sum()).sqrt())
        for count, mean in zip(counts, means, strict=True)
    ]
    height, width = images.shape[1:3]
    floored = tuple(max(deviation, 1 / 255) for deviation in deviations)
    return Preprocessing(tuple(means), floored, size=(height, width))
