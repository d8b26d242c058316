"""Who answers from now on: a pure function of where a stream stands and of what was seen, to decisions with reasons."""

from typing import Literal, NamedTuple

from bacs.control.candidates import MIXED, Picked
from bacs.control.looks import CLEARLY, Gain
from bacs.control.standing import Standing


class Choices(NamedTuple):
    """What is in force, and what may be."""

    adapts: bool  # whether adapted weights answer
    batch_weight: float
    statistics: str
    aside: bool  # whether adapted weights are kept that do not answer
    may_adapt: bool  # whether the method moves weights at all
    guard: bool

    @property
    def is_home(self) -> bool:
        """Whether the ensemble answers as it came."""
        return not self.adapts and self.batch_weight == 0


class Evidence(NamedTuple):
    """What the looks of the present world say together."""

    picked: Picked  # the share of batch statistics that is best at home
    part: float  # of the mean batch, how mixed its classes are
    classes: str  # the same in words
    gain: Gain | None  # of adapted weights over home under that share, if they were asked
    runs: bool = False  # whether classes arrive in runs

    @property
    def mixed(self) -> bool:
        return self.part >= MIXED and not self.runs


class Decision(NamedTuple):
    """One of these, with its reason:

    gather      answer batches by the statistics of a memory, and by none until it tells something
    set aside   weights go home; they are kept if the world has changed, and given up if it is they that have
    go halfway  weights go half of the way home, and on at half the rate
    take up     weights that were set aside answer again
    begin       weights move, from home
    normalise   home answers under another share of batch statistics
    """

    what: Literal["gather", "set aside", "go halfway", "take up", "begin", "normalise"]
    reason: str


def decide(now: Standing, chosen: Choices, seen: Evidence) -> list[Decision]:
    """What is to change, in this order; nothing if all may stay as it is."""
    decisions = []
    gathers = not seen.mixed and chosen.guard and not now.few
    if gathers:
        decisions.append(Decision("gather", _few(seen)))
    of_weights = decide_on_weights(now, chosen, seen)
    adapts, refused, weight, statistics = chosen.adapts, now.refused, chosen.batch_weight, chosen.statistics
    if of_weights is not None:
        decisions.append(of_weights)
        adapts = of_weights.what != "set aside"
    if of_weights is not None and not adapts:
        refused, weight, statistics = refused or now.knows_world, 0.0, "source"
    best = seen.picked.batch_weight
    if not adapts and chosen.may_adapt and best > 0 and seen.mixed and now.knows_world and not refused:
        reason = f"{seen.picked.reason}; classes are mixed ({seen.classes}): weights move too"
        return [*decisions, Decision("begin", reason)]
    if not adapts and not gathers and (best != weight or statistics != "source"):
        decisions.append(Decision("normalise", seen.picked.reason))
    return decisions


def home_takes_over(gain: Gain, *, proven: bool) -> bool:
    """Whether home answers in a world so new that nothing in it could surprise, by how much better its members agree.

    Who answered in the old world goes by what it was, and goes unless it agrees better than home by a standard error.
    Whoever was `proven` in the new one goes if home agrees better by two, for the world may have changed again.
    """
    return gain.better > (2 if proven else -1) * gain.error


def decide_on_weights(now: Standing, chosen: Choices, seen: Evidence) -> Decision | None:
    """Whether adapted weights go on answering, or answer again."""
    gain, best = seen.gain, seen.picked.batch_weight
    if chosen.adapts and not seen.mixed:
        return Decision("set aside", _few(seen))
    if gain is None:
        return None
    if chosen.adapts and gain.better < -gain.error:
        clearly = gain.better < -CLEARLY * gain.error
        retreat = "set aside" if now.holds or now.halved or clearly else "go halfway"
        return Decision(retreat, f"adapted weights agree less than statistics alone ({gain})")
    if chosen.adapts and best == 0 and gain.better <= gain.error:
        return Decision("set aside", seen.picked.reason)
    if chosen.aside and seen.mixed and best > 0 and gain.better >= 0:
        return Decision("take up", f"adapted weights agree as well again ({gain})")
    return None


def _few(seen: Evidence) -> str:
    return "classes arrive in runs" if seen.runs else f"few classes at a time ({seen.classes})"
