"""What a stream says of itself: what a step saw, what was decided, and what the manifest of a saved one has."""

from collections.abc import Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from torch import Tensor

from bacs import agreement
from bacs.ensemble import Member
from bacs.methods.catalogue import Method
from bacs.methods.moved import posterior_deviations
from bacs.methods.recent import SavedRecent
from bacs.methods.settings import Settings
from bacs.predictive import average
from bacs.schema import Count


class Observed(NamedTuple):
    """What the last step saw, without labels, and how it was taken."""

    step: int  # how many were taken, this one included
    images: int
    agreement: float | None  # these as in `bacs.agreement.Figures`
    vote_agreement: float | None
    beyond_chance: float | None
    confidence: float
    predictive_entropy: float
    expected_entropy: float
    effective_classes: float
    counted_classes: float
    moved: tuple[float | None, ...]  # each member's distance from home, in posterior deviations
    batch_weight: float
    learning_rate: float
    posterior_weight: float


def observe_step(
    step: int, rows: Sequence[Tensor], members: Sequence[Member], method: Method, settings: Settings
) -> Observed:
    """What a step saw in the members' predictions of its batch."""
    assert settings.batch_weight is not None
    how = {"min_variance": settings.min_variance}
    moved = tuple(posterior_deviations(member, method.adapts, **how) for member in members)
    chosen = settings.batch_weight, settings.learning_rate, settings.posterior_weight
    return Observed(step, len(rows[0]), *agreement.observe(average(rows)), moved, *chosen)


class Event(NamedTuple):
    """A decision: after which step, what became of what, and why."""

    step: int
    what: dict[str, Any]
    reason: str


class Start(TypedDict):
    method: str
    settings: Settings


class SavedStream(TypedDict):
    """What `Stream.save` writes beside the ensemble; what may be missing, version 0.1 did not have."""

    method: str
    settings: Settings
    start: NotRequired[Start]
    steps: Count
    device: NotRequired[str | None]
    compile: NotRequired[bool]
    seed: NotRequired[int]
    batch_size: NotRequired[Count | None]
    beside: NotRequired[dict[str, Any]]
    observed: NotRequired[Observed | None]
    history: NotRequired[list[Event]]
    recent: NotRequired[SavedRecent]
