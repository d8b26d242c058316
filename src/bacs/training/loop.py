"""The training loop: one epoch of SGD that folds its iterates into the posterior.

All randomness of an epoch (order, augmentation, dropout) follows from the seed and the epoch's number. So a run that
goes on from the last finished epoch gives the same weights as one that never stopped.
"""

import hashlib
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bacs.adaptation.forward import logits_of
from bacs.errors import DivergenceError
from bacs.layout import arrange, arrange_images, layout_of
from bacs.parameters import NORM_LAYERS, read
from bacs.posteriors import KINDS, Posterior
from bacs.preprocessing import Preprocessing, to_model
from bacs.threads import OnBatch
from bacs.training.settings import TrainingSettings
from bacs.training.shard import WHOLE, Shard


@dataclass
class TrainState:
    """A member in training. It changes in place; a checkpoint holds all of it."""

    model: nn.Module
    network: nn.Module  # what is called: the model, or its wrapper that averages gradients over processes
    optimizer: torch.optim.SGD
    posterior: Posterior
    epoch: int  # how many are finished


class EpochLog(NamedTuple):
    epoch: int  # counted from 1
    learning_rate: float  # of the last batch
    loss: float
    accuracy: float  # on the augmented training images, as they were met
    seconds: float
    images_per_second: float
    iterates: int  # in the posterior so far


class Batch(NamedTuple):
    images: Tensor  # this process's part, uint8 NHWC
    labels: Tensor
    weight: float  # of this part in the mean over the whole batch, times the number of parts


def start(model: nn.Module, settings: TrainingSettings, shard: Shard = WHOLE) -> TrainState:
    """The state before the first epoch; the model is trained in place."""
    arrange(model, layout_of(model))
    params = {name: p for name, p in model.named_parameters() if p.requires_grad}
    norm = {id(p) for layer in model.modules() if isinstance(layer, NORM_LAYERS) for p in layer.parameters()}
    kept = [p for p in params.values() if settings.decay_norm or id(p) not in norm]
    free = [p for p in params.values() if not settings.decay_norm and id(p) in norm]
    groups = [{"params": kept}, {"params": free, "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    posterior = KINDS[settings.posterior].module.init(read(model))
    return TrainState(model, shard.wrap(model), optimizer, posterior, 0)


def train_epoch(
    state: TrainState,
    images: Any,
    labels: Tensor,
    settings: TrainingSettings,
    preprocessing: Preprocessing | None,
    *,
    shard: Shard = WHOLE,
    on_batch: OnBatch = lambda count: None,
) -> EpochLog:
    """Takes `state` through one more epoch and says how it went."""
    model = state.model
    like = next(model.parameters())
    steps = math.ceil(len(labels) / settings.batch_size)
    if len(labels) // steps < shard.count:
        raise ValueError(
            f"batch_size must be at least {shard.count}, one image per process, got {len(labels) // steps}"
        )
    loss_sum = torch.zeros((), dtype=torch.float64, device=like.device)
    correct = torch.zeros((), dtype=torch.int64, device=like.device)
    learning_rate, begin = 0.0, time.perf_counter()
    model.train()
    with _dropout_seed(epoch_seed(settings.seed, state.epoch) + shard.index, like.device):
        for step, batch in enumerate(epoch_batches(images, labels, settings, state.epoch, shard)):
            done = state.epoch * steps + step
            learning_rate = settings.learning_rate * settings.schedule(done / (settings.epochs * steps))
            for group in state.optimizer.param_groups:
                group["lr"] = learning_rate
            inputs = arrange_images(to_model(batch.images, preprocessing, like), model)
            targets = batch.labels.to(like.device)
            with torch.autocast(like.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
                logits = logits_of(state.network(inputs))
            loss = settings.objective(logits.float(), targets)
            state.optimizer.zero_grad(set_to_none=True)
            (loss * batch.weight).backward()
            state.optimizer.step()
            loss_sum += loss.detach() * len(targets)
            correct += (logits.detach().argmax(dim=1) == targets).sum()
            if collects(done + 1, steps, settings):
                state.posterior = KINDS[settings.posterior].module.update(state.posterior, read(model))
            on_batch(len(targets))
    loss_mean, accuracy = shard.total(loss_sum) / len(labels), shard.total(correct) / len(labels)
    if not math.isfinite(loss_mean):
        raise DivergenceError(
            f"the training loss was {loss_mean} in epoch {state.epoch + 1}; a smaller learning_rate "
            f"(now {settings.learning_rate}) or a warm-up helps"
        )
    state.epoch += 1
    seconds = time.perf_counter() - begin
    count = state.posterior._asdict().get("count", 0)
    return EpochLog(state.epoch, learning_rate, loss_mean, accuracy, seconds, len(labels) / seconds, count)


def collects(done: int, steps: int, settings: TrainingSettings) -> bool:
    """Whether an iterate is folded in after `done` batches in all, at `steps` per epoch.

    Evenly spread, the last at the epoch's end, for all epochs past `collect_from`: 160 of 300 gives 140 iterates.
    """
    if done <= round(settings.collect_from * settings.epochs * steps):
        return False
    per_epoch = min(settings.collections_per_epoch, steps)
    return done * per_epoch // steps > (done - 1) * per_epoch // steps


def check_collection(settings: TrainingSettings, images: int) -> None:
    """Raises unless training on so many images collects the two iterates that a variance needs."""
    steps = math.ceil(images / settings.batch_size)
    first, last = round(settings.collect_from * settings.epochs * steps) + 1, settings.epochs * steps
    # From the end, where every epoch collects: two are found at once, however many epochs a recipe asks for.
    count = sum(1 for _ in islice(filter(lambda done: collects(done, steps, settings), range(last, first - 1, -1)), 2))
    if count < 2 and settings.posterior != "flat":
        raise ValueError(
            f"a posterior needs at least 2 iterates, got {count} of epochs={settings.epochs}, collect_from="
            f"{settings.collect_from:.3g}, collections_per_epoch={settings.collections_per_epoch}"
        )


def epoch_batches(images: Any, labels: Tensor, settings: TrainingSettings, epoch: int, shard: Shard) -> Iterator[Batch]:
    """This process's part of every augmented batch of an epoch.

    Batches differ by at most one image: no small rest that would upset batch norm, and no image left out.
    """
    generator = torch.Generator().manual_seed(epoch_seed(settings.seed, epoch))
    order = torch.randperm(len(labels), generator=generator)
    uniforms = torch.rand(len(labels), settings.augment.draws, generator=generator)
    steps = math.ceil(len(labels) / settings.batch_size)

    def make(positions: Tensor, draws: Tensor) -> Batch:
        mine = shard.part(len(positions))
        chosen = positions[mine]
        weight = len(chosen) * shard.count / len(positions)
        return Batch(settings.augment(images, chosen, draws[mine]), labels[chosen], weight)

    parts = zip(order.tensor_split(steps), uniforms.tensor_split(steps), strict=True)
    if isinstance(images, Tensor):
        yield from (make(*part) for part in parts)
        return
    with ThreadPoolExecutor(1) as ahead:  # decodes the next batch while the model is busy with this one
        waiting = None
        for part in parts:
            following = ahead.submit(make, *part)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def epoch_seed(seed: int, epoch: int) -> int:
    """A 63-bit seed for one epoch; neighbouring seeds and epochs have nothing in common."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{epoch}".encode()).digest()[:8], "big") >> 2


@contextmanager
def _dropout_seed(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout draws from `seed` for a while; the caller's random state comes back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
