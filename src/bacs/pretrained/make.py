"""The members that `bacs posterior` makes of one checkpoint's member, by a plan."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bacs.data.image_set import ImageSet
from bacs.ensemble import Member
from bacs.errors import DataError
from bacs.inputs import check_seed
from bacs.posteriors.flat import Flat
from bacs.pretrained.fisher import with_fisher
from bacs.pretrained.restarts import with_new_head
from bacs.pretrained.samples import from_samples, temperature_for
from bacs.pretrained.short_swag import short_swag
from bacs.pretrained.source import REFRESH, some, taken
from bacs.pretrained.squares import Expectation
from bacs.training.augment import Augmentation, Identity, PadCropFlip
from bacs.training.member import member_seed

AUGMENTATIONS: dict[str, Augmentation] = {"none": Identity(), "pad_crop_flip": PadCropFlip()}
FISHER_IMAGES = 2000

OnBatch = Callable[[int], None]


@dataclass(frozen=True)
class Plan:
    """Which posterior, how many members and by which way; the numbers of each way."""

    kind: str | None = None  # fisher or swag; None: what the member has, else fisher
    way: str | None = None  # samples, restarts or seeds
    members: int = 1
    images: int | None = None
    steps: int = 300
    collect_every: int = 10
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    batch_size: int = 128
    augment: Augmentation = AUGMENTATIONS["none"]
    prior_precision: float = 1.0
    expectation: Expectation | None = None
    temperature: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("members", "steps", "collect_every", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        check_seed(self.seed)
        if self.images is not None and self.images < 2:
            raise ValueError(f"images must be at least 2, got {self.images}")
        if self.way == "seeds" and self.kind == "fisher":
            raise ValueError("kind must be swag for members from seeds: a Fisher posterior has no seed, got fisher")
        if self.temperature is not None and not self.temperature > 0:
            raise ValueError(f"temperature must be > 0, got {self.temperature}")
        if self.temperature is not None and self.way != "samples":
            raise ValueError(f"temperature belongs to members from samples, got {self.temperature}")

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"augment": type(self.augment).__name__}


def make(
    member: Member, source: ImageSet, plan: Plan, number: int = 0, on_batch: OnBatch = lambda count: None
) -> tuple[list[Member], dict[str, Any]]:
    """New members and what there is to know of them; `number` tells checkpoints apart, so that no two share a seed."""
    seeds = [member_seed(plan.seed, number * plan.members + index) for index in range(plan.members)]
    kind = chosen(member, plan)
    if plan.way == "seeds":
        return [_swag(member, source, plan, seed, on_batch) for seed in seeds], {}
    if plan.way == "restarts":
        restarted = [_restarted(member, source, plan, seed, on_batch) for seed in seeds]
        pairs = zip(restarted, seeds, strict=True)
        return [_posterior(each, source, plan, kind, seed, on_batch) for each, seed in pairs], {}
    whole = _posterior(member, source, plan, kind, seeds[0], on_batch)
    if plan.way is None:
        return [whole], {}
    images = taken(source.images, REFRESH, plan.seed)
    temperature = plan.temperature or temperature_for(whole, images, seed=plan.seed)
    drawn = from_samples(whole, images, plan.members, temperature=temperature, seed=seeds[0])
    return drawn, {"temperature": temperature}


def chosen(member: Member, plan: Plan) -> str:
    """fisher, swag, or own: the posterior that the member has."""
    if plan.kind is not None:
        return plan.kind
    if plan.way == "seeds":
        return "swag"
    return "fisher" if isinstance(member.posterior, Flat) else "own"


def work(member: Member, source: ImageSet, plan: Plan) -> int:
    """How many images `make` reports, for a progress bar."""
    swag = plan.steps // plan.collect_every * plan.collect_every * plan.batch_size
    fisher = min(plan.images or FISHER_IMAGES, len(source))
    each = {"swag": swag, "fisher": fisher, "own": 0}[chosen(member, plan)]
    if plan.way == "restarts":
        each += plan.steps * plan.batch_size
    return each * (plan.members if plan.way in ("seeds", "restarts") else 1)


def labelled(source: ImageSet, wanted: int | None, seed: int) -> tuple[Any, Any]:
    """Some of the source images and their labels; all of them stay lazy."""
    if source.labels is None:
        raise DataError(f"{source.name} has no labels, which swag and restarts train on; kind fisher needs none")
    if wanted is None:
        return source.images, source.labels
    return taken(source.images, wanted, seed), source.labels[some(len(source), wanted, seed).numpy()]


def _posterior(member: Member, source: ImageSet, plan: Plan, kind: str, seed: int, on_batch: OnBatch) -> Member:
    if kind == "own":
        return member
    if kind == "swag":
        return _swag(member, source, plan, seed, on_batch)
    return with_fisher(
        member,
        taken(source.images, plan.images or FISHER_IMAGES, plan.seed),
        source_size=len(source),
        prior_precision=plan.prior_precision,
        expectation=plan.expectation,
        seed=seed,
        on_batch=on_batch,
    )


def _swag(member: Member, source: ImageSet, plan: Plan, seed: int, on_batch: OnBatch) -> Member:
    return short_swag(
        member,
        *labelled(source, plan.images, plan.seed),
        steps=plan.steps,
        collect_every=plan.collect_every,
        learning_rate=plan.learning_rate,
        weight_decay=plan.weight_decay,
        batch_size=plan.batch_size,
        augment=plan.augment,
        seed=seed,
        on_batch=on_batch,
    )


def _restarted(member: Member, source: ImageSet, plan: Plan, seed: int, on_batch: OnBatch) -> Member:
    return with_new_head(
        member,
        *labelled(source, plan.images, plan.seed),
        steps=plan.steps,
        weight_decay=plan.weight_decay,
        batch_size=plan.batch_size,
        augment=plan.augment,
        seed=seed,
        on_batch=on_batch,
    )
