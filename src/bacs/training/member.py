"""One member as an independent job: goes on from its checkpoint, stores the finished member, says how good it is."""

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bacs import checkpoints, data, metrics, models
from bacs.data.image_set import ImageSet, take_first
from bacs.ensemble import Ensemble, Member
from bacs.errors import DataError
from bacs.layout import arrange
from bacs.parameters import read as read_parameters
from bacs.posteriors import flat
from bacs.preprocessing import Preprocessing
from bacs.training import folder, shard, state, tensorboard
from bacs.training.fit import checked, initialised, preprocessing_of
from bacs.training.loop import EpochLog, TrainState, start, train_epoch
from bacs.training.mean import at_mean
from bacs.training.recipe import Recipe


@dataclass(frozen=True)
class MemberJob:
    """All that a process anywhere needs to train one member."""

    recipe: Recipe
    index: int
    out: Path
    data_dir: Path
    device: str = "cpu"
    checkpoint_every: int = 1  # epochs
    tensorboard: bool = False


def train_member(job: MemberJob) -> dict[str, Any]:
    """Scores of a member on held-out data, once it is trained and stored."""
    if folder.is_finished(job.out, job.index):
        return folder.about(job.out, job.index)
    mine = shard.current()
    if mine.index > 0:
        return _train(job, mine)
    with folder.locked(job.out, job.index):
        return _train(job, mine)


def datasets(recipe: Recipe, data_dir: Path, *, download: bool = False) -> tuple[ImageSet, ImageSet]:
    """Training images and held-out images of a recipe's data set."""
    train = take_first(data.load(recipe.data, split="train", data_dir=data_dir, download=download), recipe.limit)
    test = take_first(data.load(recipe.data, split="test", data_dir=data_dir, download=download), recipe.limit)
    if train.labels is None or test.labels is None:
        raise DataError(f"{recipe.data} has no labels to train on")
    return train, test


def build(recipe: Recipe, seed: int, train: ImageSet) -> nn.Module:
    """The recipe's model for these classes and channels, with random weights that depend on the seed alone."""
    fitting = {"classes": len(train.classes), "channels": train.images.shape[-1]}
    arguments = fitting | {key: value for key, value in recipe.model.items() if key != "name"}
    return initialised(lambda: models.build(recipe.model["name"], **arguments), seed)


def member_seed(seed: int, index: int) -> int:
    """A seed for each member; no two members of neighbouring seeds share one."""
    return int.from_bytes(hashlib.sha256(f"{seed}/member-{index}".encode()).digest()[:6], "big")


def _train(job: MemberJob, mine: shard.Shard) -> dict[str, Any]:
    train, test = datasets(job.recipe, job.data_dir)
    assert train.labels is not None
    images, labels = checked(train.images, train.labels)
    preprocessing = job.recipe.given_preprocessing() or preprocessing_of(images)
    settings = job.recipe.settings(member_seed(job.recipe.seed, job.index))
    current = start(build(job.recipe, settings.seed, train).to(job.device), settings, mine)
    where, log = folder.state_folder(job.out, job.index), []
    if (where / checkpoints.MANIFEST).exists():
        log = state.load(where, current)
    while current.epoch < settings.epochs:
        beat = Heartbeat(folder.now_file(job.out, job.index), current.epoch, len(labels) // mine.count)
        on_batch = beat if mine.index == 0 else (lambda count: None)
        done = train_epoch(current, images, labels, settings, preprocessing, shard=mine, on_batch=on_batch)
        log.append(_line(done))
        if job.tensorboard and mine.index == 0:
            tensorboard.write(job.out, job.index, log[-1])
        if mine.index == 0 and (done.epoch % job.checkpoint_every == 0 or done.epoch == settings.epochs):
            state.save(where, current, log)
            folder.write_file(folder.log_file(job.out, job.index), "".join(json.dumps(line) + "\n" for line in log))
    if mine.index > 0:
        return {}
    return _finish(job, current, images, preprocessing, train, test, log)


def _finish(
    job: MemberJob,
    current: TrainState,
    images: Any,
    preprocessing: Preprocessing,
    train: ImageSet,
    test: ImageSet,
    log: list[dict[str, Any]],
) -> dict[str, Any]:
    """Scores the last iterate, moves to the mean, scores that, and stores the member."""
    model = current.model
    last = Member(model.eval(), flat.init(read_parameters(model)), preprocessing)
    scores = {"last_iterate": score(last, test)}
    # Back to plain memory: a checkpoint would not keep the other layout, and both must predict the same bits.
    arrange(model, torch.contiguous_format)
    member = at_mean(model, current.posterior, images, preprocessing, batch_size=job.recipe.batch_size)
    scores["mean"] = score(member, test)
    about = {"member": job.index, "recipe": job.recipe.as_json(), "scores": scores, "log": log}
    made = Ensemble([member], class_names=train.classes)
    checkpoints.write(folder.member_folder(job.out, job.index), made.describe() | {"training": about}, made.tensors())
    state.remove(folder.state_folder(job.out, job.index))
    folder.now_file(job.out, job.index).unlink(missing_ok=True)
    return about


def score(member: Member, test: ImageSet) -> dict[str, float]:
    """Accuracy and negative log-likelihood on held-out images."""
    probabilities = Ensemble([member]).predict(test.images)
    labels = torch.as_tensor(test.labels)
    return {"accuracy": metrics.accuracy(probabilities, labels), "nll": metrics.nll(probabilities, labels)}


def _line(done: EpochLog) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in done._asdict().items()}


class Heartbeat:
    """Says about twice a second where a member is; other processes, on other machines too, read it from the file."""

    def __init__(self, file: Path, epoch: int, images: int) -> None:
        self.file, self.epoch, self.images = file, epoch, images
        self.done, self.written = 0, 0.0

    def __call__(self, count: int) -> None:
        self.done += count
        if time.monotonic() - self.written > 0.5:
            self.written = time.monotonic()
            now = {"epoch": self.epoch, "images": min(self.done, self.images), "of": self.images}
            folder.write_file(self.file, json.dumps(now), durable=False)
