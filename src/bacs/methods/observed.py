"""What a stream says of itself: what a step saw, and what was decided."""

from typing import Any, NamedTuple


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


class Event(NamedTuple):
    """A decision: after which step, what became of what, and why."""

    step: int
    what: dict[str, Any]
    reason: str
