"""What home, the ensemble as it came, is asked about a batch.

A look asks it under every share of batch statistics; a short question, whether it is better than who answers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from bacs.adaptation.statistics import Statistics
from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.gather import Gathered
from bacs.control.looks import Gain, Look
from bacs.control.probe import Votes
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.predictive import Predictive, average
from bacs.threads import Threads

QUICK_WINDOW = 4
"""Short questions that count together."""


def can_look(source: Ensemble, images: Sequence[Tensor]) -> bool:
    """Whether there is something to choose, and somebody to ask."""
    if trying.nothing_to_try(source) is not None:
        return False
    return len(source) > 1 or probing.can_be_mirrored(images[0])


def look_at_batch(
    image: int,
    home: Ensemble,
    shares: Sequence[float],
    said: dict[float, Votes],
    away: Votes | None,
    images: list[Tensor],
    seed: int,
) -> Look:
    """What home says of a batch under its own statistics, beside what adapted weights say of it.

    `said` is what home has answered already, by share.
    """
    how: dict[str, Any] = {"batch_size": len(images[0]), "seed": seed, "mirrored": len(home) == 1}
    left = [r for r in shares if r not in said]
    found = said | trying.try_weights(home, PerMember(images), left, **how, trusting=True)
    return Look(image, {r: found[r] for r in shares}, away)


def look_at_memory(
    image: int,
    home: Ensemble,
    shares: Sequence[float],
    away: Votes | None,
    gathered: Gathered,
    drawn: list[Tensor],
    asked: list[Tensor],
    threads: Threads,
) -> Look:
    """What home says of images under the statistics of drawn ones, beside what adapted weights say of them."""
    found = {r: gathered.ask(home.members, r, drawn, asked, home.class_mask, threads) for r in shares}
    of_drawn = {r: seen for r, (_, seen) in found.items() if seen is not None}
    return Look(image, {r: seen for r, (seen, _) in found.items()}, away, of_drawn)


def ask_home(home: Ensemble, share: float, images: list[Tensor]) -> Predictive:
    """What home says of a batch under one share of its statistics."""
    return replace(home, statistics=Statistics(share)).predictive_of_batch(PerMember(images), len(images[0]))


class ShortQuestions:
    """What who answers and home, under one share or two, said of the last batches that both were asked about."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.all: list[tuple[Votes, ...]] = []

    def ask(self, home: Ensemble, shares: Sequence[float], images: list[Tensor], rows: list[Tensor]) -> list[Gain]:
        """How much better the members of home agree, under each share, than those who answered with `rows`."""
        found = [ask_home(home, r, images) for r in shares]
        said = tuple(probing.votes_in(each) for each in (average(rows), *found))
        self.all = [*(each for each in self.all if len(each) == len(said)), said][-QUICK_WINDOW:]
        own, *homes = (probing.join(list(side)) for side in zip(*self.all, strict=True))
        return [Gain(*probing.gain(other, own, own)) for other in homes]

    def describe(self) -> list[list[float]]:
        return [[seen.confidence for seen in each] for each in self.all]

    def pack(self) -> dict[str, Tensor]:
        return {f"said/{i}/{j}": seen.labels for i, each in enumerate(self.all) for j, seen in enumerate(each)}

    def unpack(self, about: list[list[float]], group: dict[str, Tensor], classes: int) -> None:
        """Takes over what was described and packed."""
        self.all = [
            tuple(Votes(group[f"said/{i}/{j}"], classes, value) for j, value in enumerate(values))
            for i, values in enumerate(about)
        ]
