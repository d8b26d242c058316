"""Members and ensembles: the user's handles on models that carry a posterior."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bacs import checkpoints, inputs, models, posteriors
from bacs.adaptation import loop, statistics
from bacs.adaptation.forward import try_out
from bacs.adaptation.statistics import SOURCE, Statistics
from bacs.agreement import Reference
from bacs.architecture import Architecture, architecture_of
from bacs.inputs import Images
from bacs.layout import arrange_images
from bacs.parameters import check_fit, check_model
from bacs.posteriors import Posterior
from bacs.posteriors.scale import check_scale
from bacs.predictive import Predictive, average
from bacs.preprocessing import Preprocessing, to_model
from bacs.threads import OnBatch, Threads, can_share


@dataclass(frozen=True, eq=False, repr=False)
class Member:
    """A model, the posterior over its weights, and how its inputs are made.

    The model's weights are where adaptation starts. The paper starts at the posterior's mean: see
    `bacs.training.at_mean`. "No posterior" is said by `bacs.posteriors.flat.init(params)`.
    """

    model: nn.Module
    posterior: Posterior
    preprocessing: Preprocessing | None = None
    architecture: Architecture | None = None  # how `bacs.load` builds the model again; found if bacs built it
    posterior_scale: float = 1.0  # what posterior_weight is relative to: beta = posterior_weight * posterior_scale

    def __post_init__(self) -> None:
        check_model(self.model)
        posteriors.kind_of(self.posterior)
        if self.preprocessing is not None and not isinstance(self.preprocessing, Preprocessing):
            raise TypeError(f"preprocessing must be bacs.Preprocessing(mean, std, size), got {self.preprocessing!r}")
        check_fit("posterior", self.posterior.mean, dict(self.model.named_parameters()))
        check_scale(self.posterior_scale)
        object.__setattr__(self, "posterior_scale", float(self.posterior_scale))
        if self.architecture is None:
            object.__setattr__(self, "architecture", architecture_of(self.model))

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.model.parameters())
        kind = posteriors.kind_of(self.posterior)
        scale = "" if self.posterior_scale == 1 else f" of scale {self.posterior_scale:.3g}"
        return f"Member({type(self.model).__name__} with {count:,} parameters, posterior {kind}{scale})"

    @property
    def like(self) -> Tensor:
        """A tensor on the model's device and of its type."""
        floats = (t for t in (*self.model.parameters(), *self.model.buffers()) if t.is_floating_point())
        return next(floats, torch.empty(0))

    def prepare(self, batch: Tensor) -> Tensor:
        """The batch as this member's model takes it."""
        return arrange_images(to_model(batch, self.preprocessing, self.like), self.model)


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """k members whose predicted probabilities are averaged.

    `statistics` says which batch-norm statistics predictions use, `temperature` how sure they are (softmax(z / T)),
    `class_mask` which classes are possible, `reference` how often members agree and are right on source images,
    `adaptation` how the members came about if they were adapted.
    """

    members: Sequence[Member]
    class_names: Sequence[str] | None = None
    class_mask: Tensor | None = None
    statistics: Statistics = SOURCE
    temperature: float = 1.0
    reference: Reference | None = None
    adaptation: dict[str, Any] | None = field(default=None)

    def __post_init__(self) -> None:
        if isinstance(self.members, (Member, nn.Module)) or not isinstance(self.members, Iterable):
            raise TypeError(f"members must be a list of bacs.Member, got one {type(self.members).__name__}")
        members = tuple(self.members)
        if not members:
            raise ValueError("members must hold at least one bacs.Member, got none")
        for member in members:
            if not isinstance(member, Member):
                raise TypeError(f"members must be bacs.Member(model, posterior), got {type(member).__name__}")
        object.__setattr__(self, "members", members)
        if self.class_names is not None and (isinstance(self.class_names, str) or not _is_row(self.class_names)):
            raise TypeError(f"class_names must be several words, one per class, got {self.class_names!r}")
        if self.class_mask is not None:
            object.__setattr__(self, "class_mask", _as_mask(self.class_mask, self.class_names))
        if (classes := models.classes_of(members[0].model)) is not None:
            self._check_lengths(classes)
        if not isinstance(self.statistics, Statistics):
            raise TypeError(f"statistics must be bacs.Statistics(batch_weight), got {self.statistics!r}")
        if not (isinstance(self.temperature, (int, float)) and 0 < self.temperature < math.inf):
            raise ValueError(f"temperature must be a finite number > 0, got {self.temperature!r}")

    def __repr__(self) -> str:
        adapted = "" if self.adaptation is None else f", adapted by {self.adaptation['method']}"
        warmth = "" if self.temperature == 1 else f", temperature {self.temperature:.3g}"
        return f"Ensemble({len(self)} x {self.members[0]!r}, {self.statistics}{warmth}{adapted})"

    def __len__(self) -> int:
        return len(self.members)

    def predict(self, images: Images, *, batch_size: int = 128, seed: int = 0) -> Tensor:
        """Probabilities [images, classes]: the mean over members of their softmax, never of their logits.

        Where statistics of the batch count, images are drawn in a seeded random order, so that a folder sorted by
        class does not give batches of one class; rows come back in the order of `images`.
        """
        return self.cast_like_members(self.predictive(images, batch_size=batch_size, seed=seed).probabilities)

    def predictive(
        self, images: Images, *, batch_size: int = 128, seed: int = 0, on_batch: OnBatch = lambda count: None
    ) -> Predictive:
        """As `predict`, in float64 and with what is known of the members beside their mean."""
        inputs.check_seed(seed)
        self.check_inputs(images, batch_size)
        return average(self._predict_each(images, batch_size, seed, on_batch))

    def predictive_of_batch(self, images: Images, batch_size: int) -> Predictive:
        """As `predictive`, of one batch that was checked when it came: a check costs a seventh of 64 small images."""
        return average(self._predict_each(images, batch_size, 0, lambda count: None))

    def predict_members(self, images: Images, *, batch_size: int = 128, seed: int = 0) -> Tensor:
        """Float64 probabilities [members, images, classes]: every member's, so for few images or few classes."""
        inputs.check_seed(seed)
        self.check_inputs(images, batch_size)
        return torch.stack(list(self._predict_each(images, batch_size, seed, lambda count: None)))

    def _predict_each(self, images: Images, batch_size: int, seed: int, on_batch: OnBatch) -> Iterator[Tensor]:
        """The probabilities of one member after another, made side by side."""
        views = inputs.views_of(images, len(self))

        def member_rows(index: int, on_batch: OnBatch) -> Tensor:
            return self.predict_member(index, views[index], batch_size=batch_size, seed=seed, on_batch=on_batch)

        with Threads(len(self), allowed=can_share(images, [member.model for member in self.members])) as threads:
            yield from threads.imap(member_rows, range(len(self)), on_batch=on_batch)

    def predict_member(
        self,
        index: int,
        images: Images,
        *,
        batch_size: int = 128,
        seed: int | None = 0,
        on_batch: OnBatch = lambda count: None,
    ) -> Tensor:
        """Float64 probabilities [images, classes] of one member; without a seed, batches are cut in the given order."""
        member = self.members[index]
        inputs.check_order(images)
        with statistics.using(member.model, self.statistics):
            return loop.predict(
                member.model,
                images,
                batch_size=batch_size,
                seed=seed if self.statistics.batch_weight > 0 else None,
                prepare=member.prepare,
                class_mask=self.class_mask,
                temperature=self.temperature,
                on_batch=on_batch,
            )

    def cast_like_members(self, probabilities: Tensor) -> Tensor:
        """Probabilities in the type that the members compute in."""
        return probabilities.to(torch.promote_types(self.members[0].like.dtype, torch.float32))

    @torch.no_grad()
    def check_inputs(self, images: Images, batch_size: int) -> None:
        """Tries every member on two images, so that what does not fit is said before any work is done."""
        views = inputs.views_of(images, len(self))
        first = {}
        for view in views:
            if id(view) not in first:
                inputs.check(view, batch_size=batch_size)
                first[id(view)] = inputs.first_batch(view)
        try:
            self.check_batches([first[id(view)] for view in views])
        except ValueError as error:
            whole = getattr(views[0], "shape", None)
            if whole is None or f"[{len(first[id(views[0])])}, " not in str(error):
                raise
            raise ValueError(f"{error}; tried were the first of {list(whole)}") from error

    @torch.no_grad()
    def check_batches(self, batches: Sequence[Tensor]) -> None:
        """Raises unless every member gives finite logits for its batch, all of the same class count."""
        widths = []
        for member, batch in zip(self.members, batches, strict=True):
            if member.preprocessing is not None and batch.is_floating_point() and batch.ndim == 4:
                member.preprocessing.check_floats(batch)
            with statistics.using(member.model, SOURCE):
                widths.append(try_out(member.model, member.prepare(batch)).shape[1])
        for index, width in enumerate(widths):
            if width != widths[0]:
                raise ValueError(
                    f"members must have one class count: member 0 has {widths[0]} classes, member {index} has {width}"
                )
        self._check_lengths(widths[0])

    def _check_lengths(self, classes: int) -> None:
        for name, given in (("class_names", self.class_names), ("class_mask", self.class_mask)):
            if given is not None and len(given) != classes:
                raise ValueError(f"{name} must have {classes} entries, one per class, got {len(given)}")

    def save(self, path: str | Path) -> None:
        """Writes the ensemble to a folder that `bacs.load` opens; an ensemble already there is replaced whole."""
        checkpoints.write(path, self.describe(), self.tensors())

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """What is stored of this ensemble in tensor files, one per member."""
        groups = {}
        for index, member in enumerate(self.members):
            _, state = posteriors.pack(member.posterior, dict(member.model.named_parameters()))
            model = {f"model/{name}": t for name, t in untied(member.model).items()}
            groups[f"member-{index}"] = model | {f"posterior/{name}": t for name, t in state.items()}
        return groups

    def describe(self) -> dict[str, Any]:
        """What is stored of this ensemble in its manifest."""
        entries = [
            {
                "architecture": None if member.architecture is None else member.architecture.as_json(),
                "preprocessing": None if member.preprocessing is None else member.preprocessing.as_json(),
                "posterior": posteriors.pack(member.posterior, dict(member.model.named_parameters()))[0],
                # Left out if it is 1, so that the checksums in records of sweeps stay what they were.
                **({} if member.posterior_scale == 1 else {"posterior_scale": member.posterior_scale}),
            }
            for member in self.members
        ]
        return {
            "kind": "ensemble",
            "class_names": None if self.class_names is None else list(self.class_names),
            "class_mask": None if self.class_mask is None else self.class_mask.tolist(),
            **self.statistics.as_json(),
            "temperature": self.temperature,
            "reference": None if self.reference is None else self.reference._asdict(),
            "adaptation": self.adaptation,
            "members": entries,
        }


def check_ensemble(value: Any) -> None:
    """Raises for what is no ensemble, and says how to make one of a module: a posterior is never assumed."""
    if isinstance(value, Ensemble):
        return
    name = type(value).__name__
    if isinstance(value, nn.Module):
        raise TypeError(
            f"ensemble must be a bacs.Ensemble, got the module {name}; without a posterior it is bacs.Ensemble("
            "[bacs.Member(model, bacs.posteriors.flat.init(dict(model.named_parameters())))])"
        )
    raise TypeError(f"ensemble must be a bacs.Ensemble, got {name}; bacs.load opens a saved one")


def _as_mask(class_mask: Any, class_names: Sequence[str] | None) -> Tensor:
    """The mask as a tensor. Whole numbers would pick columns by number, and give wrong rows without a sign."""
    try:
        mask = torch.as_tensor(class_mask)
    except (TypeError, ValueError, RuntimeError):
        mask = torch.empty(0)
    if mask.dtype != torch.bool or mask.ndim != 1 or not mask.any():
        raise ValueError(f"class_mask must be one True or False per class, at least one True, got {class_mask!r}")
    if class_names is not None and len(class_names) != len(mask):
        raise ValueError(f"class_mask must have {len(class_names)} entries, as class_names has, got {len(mask)}")
    return mask


def _is_row(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def untied(model: nn.Module) -> dict[str, Tensor]:
    """The state dict with every tensor under one name: a tied weight is stored once."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            unique[name] = tensor
    return unique
