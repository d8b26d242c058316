"""One member as an independent job: goes on from its checkpoint, stores the finished member, says how good it is."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
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
from bacs.progress import Heartbeat
from bacs.training import run_folder, shard
from bacs.training.curves import write_tensorboard
from bacs.training.fit import as_training_data, initialised, preprocessing_of
from bacs.training.loop import EpochLog, TrainState, start, train_epoch
from bacs.training.mean import at_mean
from bacs.training.recipe import TrainingRecipe


@dataclass(frozen=True)
class MemberJob:
    """All that a process anywhere needs to train one member."""

    recipe: TrainingRecipe
    index: int
    out: Path
    data_dir: Path
    device: str = "cpu"
    checkpoint_every: int = 1  # epochs
    tensorboard: bool = False


def train_member(job: MemberJob) -> dict[str, Any]:
    """Scores of a member on held-out data, once it is trained and stored."""
    if run_folder.is_finished(job.out, job.index):
        return run_folder.read_about(job.out, job.index)
    mine = shard.current_shard()
    if mine.index > 0:
        return _train(job, mine)
    with run_folder.lock_member(job.out, job.index):
        return _train(job, mine)


def datasets(recipe: TrainingRecipe, data_dir: Path, *, download: bool = False) -> tuple[ImageSet, ImageSet]:
    """Training images and held-out images of a recipe's data set."""
    train = take_first(data.load(recipe.data, split="train", data_dir=data_dir, download=download), recipe.limit)
    test = take_first(data.load(recipe.data, split="test", data_dir=data_dir, download=download), recipe.limit)
    if train.labels is None or test.labels is None:
        raise DataError(f"{recipe.data} has no labels to train on")
    return train, test


def build(recipe: TrainingRecipe, seed: int, train: ImageSet) -> nn.Module:
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
    images, labels = as_training_data(train.images, train.labels)
    preprocessing = job.recipe.given_preprocessing() or preprocessing_of(images)
    settings = job.recipe.settings(member_seed(job.recipe.seed, job.index))
    current = start(build(job.recipe, settings.seed, train).to(job.device), settings, mine)
    where, log = run_folder.state_folder(job.out, job.index), []
    if (where / checkpoints.MANIFEST).exists():
        log = run_folder.load_state(where, current)
    while current.epoch < settings.epochs:
        now = partial(_place, current.epoch, len(labels) // mine.count)
        beat = Heartbeat(run_folder.now_file(job.out, job.index), now)
        on_batch = beat if mine.index == 0 else (lambda count: None)
        done = train_epoch(current, images, labels, settings, preprocessing, shard=mine, on_batch=on_batch)
        log.append(_line(done))
        if job.tensorboard and mine.index == 0:
            write_tensorboard(job.out, job.index, log[-1])
        if mine.index == 0 and (done.epoch % job.checkpoint_every == 0 or done.epoch == settings.epochs):
            run_folder.save_state(where, current, log)
            run_folder.write_log(job.out, job.index, log)
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
    checkpoints.write(
        run_folder.member_folder(job.out, job.index), made.describe() | {"training": about}, made.tensors()
    )
    run_folder.remove_state(run_folder.state_folder(job.out, job.index))
    run_folder.now_file(job.out, job.index).unlink(missing_ok=True)
    return about


def score(member: Member, test: ImageSet) -> dict[str, float]:
    """Accuracy and negative log-likelihood on held-out images."""
    probabilities = Ensemble([member]).predict(test.images)
    labels = torch.as_tensor(test.labels)
    return {"accuracy": metrics.accuracy(probabilities, labels), "nll": metrics.nll(probabilities, labels)}


def _line(done: EpochLog) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in done._asdict().items()}


def _place(epoch: int, images: int, done: int) -> str:
    """Where a member is, as the progress display reads it."""
    return json.dumps({"epoch": epoch, "images": min(done, images), "of": images})
