"""Members and ensembles: the user's handles on models that carry a posterior."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bacs import checkpoints, inputs, posteriors
from bacs.adaptation import norm_statistics, offline
from bacs.adaptation.forward import try_out
from bacs.architecture import Architecture, architecture_of
from bacs.inputs import Images
from bacs.layout import arranged
from bacs.parameters import check_fit, check_model
from bacs.posteriors import Posterior
from bacs.preprocessing import Preprocessing, to_model
from bacs.side_by_side import OnBatch, safe, side_by_side


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

    def __post_init__(self) -> None:
        check_model(self.model)
        posteriors.kind_of(self.posterior)
        check_fit("posterior", self.posterior.mean, dict(self.model.named_parameters()))
        if self.architecture is None:
            object.__setattr__(self, "architecture", architecture_of(self.model))

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.model.parameters())
        kind = posteriors.kind_of(self.posterior)
        return f"Member({type(self.model).__name__} with {count:,} parameters, posterior {kind})"

    @property
    def like(self) -> Tensor:
        """A tensor on the model's device and of its type."""
        floats = (t for t in (*self.model.parameters(), *self.model.buffers()) if t.is_floating_point())
        return next(floats, torch.empty(0))

    def prepare(self, batch: Tensor) -> Tensor:
        """The batch as this member's model takes it."""
        return arranged(to_model(batch, self.preprocessing, self.like), self.model)


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """k members whose predicted probabilities are averaged.

    `statistics` says which batch-norm statistics predictions use, `class_mask` which classes are possible,
    `adaptation` how the members came about if they were adapted.
    """

    members: Sequence[Member]
    class_names: Sequence[str] | None = None
    class_mask: Tensor | None = None
    statistics: str = "source"
    adaptation: dict[str, Any] | None = field(default=None)

    def __post_init__(self) -> None:
        members = tuple(self.members)
        if not members:
            raise ValueError("members must hold at least one bacs.Member, got none")
        for member in members:
            if not isinstance(member, Member):
                raise TypeError(f"members must be bacs.Member(model, posterior), got {type(member).__name__}")
        object.__setattr__(self, "members", members)

    def __repr__(self) -> str:
        adapted = "" if self.adaptation is None else f", adapted by {self.adaptation['method']}"
        return f"Ensemble({len(self)} x {self.members[0]!r}, {self.statistics} statistics{adapted})"

    def __len__(self) -> int:
        return len(self.members)

    def predict(self, images: Images, *, batch_size: int = 128, seed: int = 0) -> Tensor:
        """Probabilities [images, classes]: the mean over members of their softmax, never of their logits.

        Under `batch` statistics images are drawn in a seeded random order, so that a folder sorted by class does
        not give batches of one class; rows come back in the order of `images`.
        """
        self.check_inputs(images, batch_size)
        total: Tensor | None = None

        def member_rows(index: int, on_batch: OnBatch) -> Tensor:
            return self.predict_member(index, images, batch_size=batch_size, seed=seed, on_batch=on_batch)

        together = safe(images, [member.model for member in self.members])
        for rows in side_by_side(member_rows, range(len(self)), allowed=together):
            total = rows if total is None else total.add_(rows)
        assert total is not None
        return (total / len(self)).to(torch.promote_types(self.members[0].like.dtype, torch.float32))

    def predict_member(
        self,
        index: int,
        images: Images,
        *,
        batch_size: int = 128,
        seed: int = 0,
        on_batch: Callable[[int], None] = lambda count: None,
    ) -> Tensor:
        """Float64 probabilities [images, classes] of one member."""
        member = self.members[index]
        inputs.check_order(images)
        with norm_statistics.using(member.model, self.statistics):
            return offline.predict(
                member.model,
                images,
                batch_size=batch_size,
                generator=torch.Generator().manual_seed(seed) if self.statistics == "batch" else None,
                prepare=member.prepare,
                class_mask=self.class_mask,
                on_batch=on_batch,
            )

    @torch.no_grad()
    def check_inputs(self, images: Images, batch_size: int) -> None:
        """Tries every member on two images, so that what does not fit is said before any work is done."""
        inputs.check(images, batch_size=batch_size)
        self.check_batch(inputs.first(images))

    @torch.no_grad()
    def check_batch(self, batch: Tensor) -> None:
        """Raises unless every member gives finite logits for the batch, all of the same class count."""
        self.check_each([batch] * len(self))

    @torch.no_grad()
    def check_each(self, batches: Sequence[Tensor]) -> None:
        """As `check_batch`, with a batch for each member."""
        widths = []
        for member, batch in zip(self.members, batches, strict=True):
            with norm_statistics.using(member.model, "source"):
                widths.append(try_out(member.model, member.prepare(batch)).shape[1])
        for index, width in enumerate(widths):
            if width != widths[0]:
                raise ValueError(
                    f"members must have one class count: member 0 has {widths[0]} classes, member {index} has {width}"
                )
        for name, given in (("class_names", self.class_names), ("class_mask", self.class_mask)):
            if given is not None and len(given) != widths[0]:
                raise ValueError(f"{name} must have {widths[0]} entries, one a class, got {len(given)}")

    def save(self, path: str | Path) -> None:
        """Writes the ensemble to a folder that `bacs.load` opens; an ensemble already there is replaced whole."""
        manifest, tensors = self.pack()
        checkpoints.write(path, manifest, tensors)

    def pack(self) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
        """The manifest and tensor files of this ensemble."""
        tensors, entries = {}, []
        for index, member in enumerate(self.members):
            values, state = posteriors.pack(member.posterior, dict(member.model.named_parameters()))
            entries.append(
                {
                    "architecture": None if member.architecture is None else member.architecture.as_json(),
                    "preprocessing": None if member.preprocessing is None else member.preprocessing.as_json(),
                    "posterior": values,
                }
            )
            tensors[f"member-{index}"] = {f"model/{name}": t for name, t in untied(member.model).items()} | {
                f"posterior/{name}": t for name, t in state.items()
            }
        manifest = {
            "kind": "ensemble",
            "class_names": None if self.class_names is None else list(self.class_names),
            "class_mask": None if self.class_mask is None else self.class_mask.tolist(),
            "statistics": self.statistics,
            "adaptation": self.adaptation,
            "members": entries,
        }
        return manifest, tensors


def marginalise(probabilities: Sequence[Tensor]) -> Tensor:
    """p(y|x) = 1/k sum_i p(y | x, w_i): the members' mean."""
    return torch.stack(list(probabilities)).mean(dim=0)


def untied(model: nn.Module) -> dict[str, Tensor]:
    """The state dict with every tensor under one name: a tied weight is stored once."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            unique[name] = tensor
    return unique
