"""The members that `bacs posterior` makes of one checkpoint's member, by a plan."""

import math
from dataclasses import dataclass
from typing import Any

from bacs.data.image_set import ImageSet
from bacs.ensemble import Member
from bacs.errors import DataError
from bacs.inputs import check_seed
from bacs.posteriors.flat import Flat
from bacs.pretrained.fisher import with_fisher
from bacs.pretrained.new_head import with_new_head
from bacs.pretrained.samples import from_samples, temperature_for
from bacs.pretrained.short_swag import BATCH_SIZE, COLLECT_EVERY, short_swag
from bacs.pretrained.source_images import REFRESH, sample_images, sample_positions
from bacs.threads import OnBatch
from bacs.training.member import member_seed

FISHER_IMAGES = 2000
STEPS = 300
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Plan:
    """Which posterior, how many members and by which way; None stands for what is usual."""

    kind: str | None = None  # fisher or swag; None: what the member has, else fisher
    members: int = 1
    members_from: str | None = None  # samples, heads or seeds
    images: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"members": 1, "images": 2, "steps": 1}
        if self.kind == "swag" or self.members_from == "seeds":
            least["steps"] = 2 * COLLECT_EVERY  # a posterior needs two iterates
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(f"{name} must be at least {bound}, got {value}")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be > 0 and finite, got {self.learning_rate}")
        check_seed(self.seed)
        if self.members > 1 and self.members_from is None:
            raise ValueError(f"members must be 1 unless members_from says how they differ, got {self.members}")
        if self.members_from == "seeds" and self.kind == "fisher":
            raise ValueError("kind must be swag for members from seeds: a Fisher posterior has no seed, got fisher")


def make(
    member: Member, source: ImageSet, plan: Plan, number: int = 0, on_batch: OnBatch = lambda count: None
) -> tuple[list[Member], dict[str, Any]]:
    """New members and what there is to know of them; `number` tells checkpoints apart, so that no two share a seed."""
    seeds = [member_seed(plan.seed, number * plan.members + index) for index in range(plan.members)]
    kind = kind_for(member, plan)
    if plan.members_from == "seeds":
        return [_train_swag(member, source, plan, seed, on_batch) for seed in seeds], {}
    if plan.members_from == "heads":
        renewed = [_renew_head(member, source, plan, seed, on_batch) for seed in seeds]
        pairs = zip(renewed, seeds, strict=True)
        return [_add_posterior(each, source, plan, kind, seed, on_batch) for each, seed in pairs], {}
    whole = _add_posterior(member, source, plan, kind, seeds[0], on_batch)
    if plan.members_from is None:
        return [whole], {}
    images = sample_images(source.images, REFRESH, plan.seed)
    temperature = temperature_for(whole, images, seed=plan.seed)
    drawn = from_samples(whole, images, plan.members, temperature=temperature, seed=seeds[0])
    return drawn, {"temperature": temperature}


def kind_for(member: Member, plan: Plan) -> str:
    """fisher, swag, or own: the posterior that the member has."""
    if plan.kind is not None:
        return plan.kind
    if plan.members_from == "seeds":
        return "swag"
    return "fisher" if isinstance(member.posterior, Flat) else "own"


def count_images(member: Member, source: ImageSet, plan: Plan) -> int:
    """How many images `make` reports, for a progress bar."""
    steps = plan.steps or STEPS
    swag = steps // COLLECT_EVERY * COLLECT_EVERY * BATCH_SIZE
    fisher = min(plan.images or FISHER_IMAGES, len(source))
    each = {"swag": swag, "fisher": fisher, "own": 0}[kind_for(member, plan)]
    if plan.members_from == "heads":
        each += steps * BATCH_SIZE
    return each * (plan.members if plan.members_from in ("seeds", "heads") else 1)


def take_labelled(source: ImageSet, wanted: int | None, seed: int) -> tuple[Any, Any]:
    """Some of the source images and their labels; all of them stay lazy."""
    if source.labels is None:
        raise DataError(f"{source.name} has no labels, which swag and new heads are trained on; kind fisher needs none")
    if wanted is None:
        return source.images, source.labels
    positions = sample_positions(len(source), wanted, seed).numpy()
    return sample_images(source.images, wanted, seed), source.labels[positions]


def _add_posterior(member: Member, source: ImageSet, plan: Plan, kind: str, seed: int, on_batch: OnBatch) -> Member:
    if kind == "own":
        return member
    if kind == "swag":
        return _train_swag(member, source, plan, seed, on_batch)
    images = sample_images(source.images, plan.images or FISHER_IMAGES, plan.seed)
    return with_fisher(member, images, source_size=len(source), seed=seed, on_batch=on_batch)


def _train_swag(member: Member, source: ImageSet, plan: Plan, seed: int, on_batch: OnBatch) -> Member:
    return short_swag(
        member,
        *take_labelled(source, plan.images, plan.seed),
        steps=plan.steps or STEPS,
        learning_rate=plan.learning_rate or LEARNING_RATE,
        seed=seed,
        on_batch=on_batch,
    )


def _renew_head(member: Member, source: ImageSet, plan: Plan, seed: int, on_batch: OnBatch) -> Member:
    images, labels = take_labelled(source, plan.images, plan.seed)
    return with_new_head(member, images, labels, steps=plan.steps or STEPS, seed=seed, on_batch=on_batch)
