"""A stream that guards itself: it asks now and then whether what it does is better than what it came with.

A look asks the ensemble as it came, on the batch at hand, under every share of batch statistics, and decides on the
looks of the last images together. The first batches are all looked at; later ones as often as a share of the time
allows; and a batch that is unlike the last ones (`signals`), for then the world has changed. From that moment weights
hold still, until enough of the new world was seen. Adapted weights that agree less than statistics alone go half of
the way home, then all of it; in a new world they are set aside first, and taken up again if it was a short one: pure
noise, black frames, another camera for a minute.

`method="auto"` is such a stream that begins at home and moves weights where classes are mixed; with `guard=True` any
method begins as it would without, and is held back where it does harm.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from bacs import models
from bacs.adaptation.statistics import Statistics
from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.auto import check_taken
from bacs.control.candidates import MIXED, WEIGHTS
from bacs.control.gather import SHARES, SMALL, Gathered
from bacs.control.looks import Look, Looks
from bacs.control.probe import Seen
from bacs.control.saved import SavedGuardedStream, check_saved
from bacs.control.signals import Usual, signals_of
from bacs.control.steps import stream_arguments_for
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.methods import live
from bacs.methods.catalogue import Method, find
from bacs.methods.online import Stream
from bacs.methods.prepare import copied, with_class_mask
from bacs.methods.settings import AGREEMENT, Settings, check_guarded
from bacs.predictive import average

TAKEN = ("class_mask", "seed", "device", "compile", "guard")
FIRST = 256
"""Images that are looked at before weights may move, and again after a change of the world."""

WINDOW = 512
"""Images whose looks count."""

AGE = 4096
"""Images after which a look no longer counts."""

QUICK = 256
"""Images from one short question to the ensemble as it came to the next; no more often."""

QUICK_WINDOW = 4
"""Short questions that count together."""

SHARE = 0.15
"""What looks may cost, as a part of all other passes."""

PASSES_PER_STEP = 3
"""Of a step that moves weights, counted in forward passes: one forward, one backward of about two."""

GRACE = FIRST * len(WEIGHTS)
"""Passes of one image that looks may take in advance: those of the first images."""

MEMORY = 8
"""Batches of mixed classes after which they are taken one by one again."""

CLEARLY = 3.0
"""Standard errors by which adapted weights must agree less to be given up at once."""

KEPT = ("settled", "refused", "halved", "holds", "credit", "few", "mixed", "images", "asked", "picked")
"""Numbers that are saved with a stream."""


def stream_by_choice(ensemble: Ensemble, **given: Any) -> "GuardedStream":
    """A stream under `auto`; arguments as in `bacs.stream`, less what it chooses."""
    check_taken(given, TAKEN)
    source = with_class_mask(ensemble, given.get("class_mask"))
    start = Settings(batch_weight=0.0, temperature=AGREEMENT if len(ensemble) > 1 else None)
    how = {"compiled": given.get("compile", False), "seed": given.get("seed", 0), "guard": given.get("guard", True)}
    return GuardedStream(source, "bn", start, given.get("device"), **how, chooses=True)


def guarded(stream: Stream) -> "GuardedStream":
    """The same stream from its start, watched."""
    how = {"compiled": stream.compiled, "seed": stream.seed}
    return GuardedStream(stream.source, *stream.start, stream.device, **how)


class GuardedStream(Stream):
    """A stream that watches itself. Every decision is in `history`, with its reason."""

    SAVED: ClassVar[type] = SavedGuardedStream

    def __init__(
        self,
        ensemble: Ensemble,
        method: str | Method,
        settings: Settings,
        device: torch.device | str | None = None,
        compiled: bool = False,
        seed: int = 0,
        *,
        guard: bool = True,
        chooses: bool = False,
    ) -> None:
        self.guard, self.chooses = guard, chooses
        super().__init__(ensemble, method, settings, device, compiled, seed)

    @property
    def begun_with(self) -> str:
        return "auto" if self.chooses else super().begun_with

    @property
    def adapts(self) -> bool:
        """Whether adapted weights answer at present."""
        return self._method.adapts is not None

    def reset(self, *parts: str, share: float = 1.0, reason: str = "") -> None:
        with self._turn:
            super().reset(*parts, share=share, reason=reason)
            if parts:
                return
            self._looks = Looks(WINDOW, AGE)
            self._aside: list[dict[str, Tensor]] | None = None  # adapted weights that do not answer at present
            self._gathered = Gathered(self.seed)
            self._few = False  # whether batches hold few classes each
            self._mixed: list[float] = []  # of the last ones, how mixed
            self._fresh: Tensor | None = None  # signals of batches too small to be compared
            self._home: Ensemble | None = None
            self._credit = float(GRACE)  # passes of one image that looks may take
            self._images = 0  # that have come
            self._asked = 0  # after how many of them home was asked last
            self._picked = 0.0  # share of batch statistics that is best at home
            self._begin_world()

    def _follow(self, method: str | Method, given: Settings) -> None:
        if self.guard:
            check_guarded(given)
        super()._follow(method, given)

    def _begin_world(self) -> None:
        self._looks.all, self._usual = [], Usual()
        self._said: list[tuple[Seen, ...]] = []  # by who answered and by home, of the last batches asked about
        self._settled = 0  # images looked at in this world
        self._refused = False  # whether adapted weights were given up in it
        self._halved = False  # whether they went half of the way home
        self._holds = False  # whether they wait until enough of it was seen

    def step_members(self, batch: Any) -> list[Tensor]:
        with self._turn:
            images = self._opened(batch)
            self._images += len(images[0])
            if not self._can_look(images):
                return self._keep(self._answer(images))
            if self.guard and (self._few or len(images[0]) < SMALL):
                return self._keep(self._follow_memory(images))
            return self._keep(self._follow_batch(images))

    def _follow_batch(self, images: list[Tensor]) -> list[Tensor]:
        """The answer to a batch by its own statistics, by what is best by the members' word once it was seen."""
        watched = self.guard and self.adapts
        rows = self._answer(images, (lambda logits: self._permits(logits, images)) if watched else None)
        self._earn(PASSES_PER_STEP if self.adapts else 1, images)
        surprised = self.guard and self._is_surprising(images, rows)
        if surprised or self._is_due(images, rows, images):
            self._look(images, rows, free=surprised)
            if self._decide():
                rows = self._answer(images, lambda logits: False)
        return rows

    def _follow_memory(self, images: list[Tensor]) -> list[Tensor]:
        """The answer by the statistics of a memory; what is looked at and stepped on is drawn from it."""
        rows = self._gathered.answer(self._movers, images, self._threads)
        surprised = self._is_surprising(images, rows)
        if surprised:
            self._gathered.forget()
        p = average(rows).probabilities
        seen = Seen(p.argmax(dim=1)[None], p.shape[1], 0.0)
        self._gathered.add(images, seen.labels[0])
        self._earn(1, images)
        if (drawn := self._gathered.draw(len(self._movers))) is not None:
            self._earn(PASSES_PER_STEP if self.adapts else int(self.settings.batch_weight != 0), drawn)
            changed = False
            if self.adapts:
                self._answer(drawn, lambda logits: not self._holds)
            if surprised or self._is_due(drawn, rows if len(rows[0]) >= SMALL else None, images):
                self._look_at_memory(drawn, free=surprised)
                changed = self._decide()
            self._gathered.settle(self._movers, drawn, self._threads)
            if changed:
                rows = self._gathered.answer(self._movers, images, self._threads)
        if len(images[0]) >= SMALL:
            self._notice_classes(seen)
        return rows

    def _can_look(self, images: list[Tensor]) -> bool:
        if trying.nothing_to_try(self.source) is not None:
            return False
        return not self._mirrored or probing.can_be_mirrored(images[0])

    @property
    def _mirrored(self) -> bool:
        return len(self.source) == 1

    def _permits(self, logits: list[Tensor], images: list[Tensor]) -> bool:
        """Whether weights may move on this batch: not in a world of which too little was seen."""
        rows = [own.softmax(dim=1) for own in logits]
        return not self._holds and self._usual.surprise_in(signals_of(images[0], rows)) is None

    def _is_surprising(self, images: list[Tensor], rows: list[Tensor]) -> bool:
        """Whether the world has changed; then all that was seen of the old one is forgotten."""
        signals = signals_of(images[0], rows)
        if self._fresh is not None:
            signals = torch.cat([self._fresh, signals], dim=1)
        if signals.shape[1] < SMALL:
            self._fresh = signals
            return False
        self._fresh = None
        reason = self._usual.surprise_in(signals)
        if reason is not None:
            self._begin_world()
            self._holds = self.adapts
            self.note({"looks": "anew"}, reason)
        self._usual.add(signals)
        return reason is not None

    def _earn(self, passes: int, images: list[Tensor]) -> None:
        """Looks may take a share of the time of all other passes."""
        self._credit += SHARE * passes * len(images[0])

    def _is_due(self, looked_at: list[Tensor], rows: list[Tensor] | None, answered: list[Tensor]) -> bool:
        """Whether to look: at first, when home would do better, and else as often as the time for it allows."""
        if len(looked_at[0]) < 2 or not self.guard:
            return len(looked_at[0]) > 1 and self._settled < FIRST
        cost = self._cost_of_a_look(looked_at)
        if self._settled < FIRST:
            return self._credit + GRACE >= cost
        last = self._looks.all[-1].image if self._looks.all else self._images - AGE
        if self._is_home or rows is None or self._images - last >= AGE:
            return self._credit >= cost
        return self._home_is_better(answered, rows)

    @property
    def _is_home(self) -> bool:
        """Whether it answers as the ensemble as it came does."""
        return not self.adapts and self.settings.batch_weight == 0

    def _home_is_better(self, images: list[Tensor], rows: list[Tensor]) -> bool:
        """Asks the ensemble as it came now and then whether its members agree better than those who answer."""
        shares = sorted({0.0, self._picked if self.adapts and not self._few else 0.0})
        cost = len(shares) * len(images[0])
        if self._images - self._asked < QUICK or self._credit < cost or self._mirrored:
            return False
        self._credit -= cost
        self._asked = self._images
        views, count = PerMember(images), len(images[0])
        found = [replace(self._at_home(), statistics=Statistics(r)).predictive(views, batch_size=count) for r in shares]
        said = tuple(probing.seen_in(each) for each in (average(rows), *found))
        self._said = [*(each for each in self._said if len(each) == len(said)), said][-QUICK_WINDOW:]
        own, *homes = (probing.join(list(side)) for side in zip(*self._said, strict=True))
        gains = [probing.gain(home, own, own) for home in homes]
        if all(better <= 2 * error for better, error in gains):
            return False
        self._said, self._looks.all = [], []  # of a world that has changed by and by
        return True

    def _cost_of_a_look(self, images: list[Tensor]) -> int:
        """In passes of one image."""
        return (len(WEIGHTS) + (self._aside is not None)) * (2 if self._mirrored else 1) * len(images[0])

    def _look(self, images: list[Tensor], rows: list[Tensor], *, free: bool) -> None:
        """Asks the ensemble as it came, and adapted weights, about a batch under its own statistics."""
        if not free:
            self._credit -= self._cost_of_a_look(images)
        how: dict[str, Any] = {"batch_size": len(images[0]), "seed": self.seed, "mirrored": self._mirrored}
        home = trying.try_weights(self._at_home(), PerMember(images), **how)

        def ask() -> Seen:
            own = Ensemble(self.members, class_mask=self.source.class_mask, statistics=Statistics(self._share()))
            return probing.look(own, PerMember(images), **how)

        own = probing.seen_in(average(rows)) if self.adapts and not self._mirrored else self._ask_away(ask)
        self._take_in(Look(self._images, home, own))

    def _look_at_memory(self, drawn: list[Tensor], *, free: bool) -> None:
        """Asks them about the last images under the statistics of drawn ones."""
        if not free:
            self._credit -= self._cost_of_a_look(drawn)  # two passes for each of fewer shares
        mask, threads = self.source.class_mask, self._threads
        found = {r: self._gathered.ask(self._at_home().members, r, drawn, mask, threads) for r in SHARES}
        home, seen = ({r: pair[place] for r, pair in found.items()} for place in (0, 1))
        away = self._ask_away(lambda: self._gathered.ask(self.members, self._share(), drawn, mask, threads)[0])
        self._take_in(Look(self._images, home, away, seen))

    def _take_in(self, look: Look) -> None:
        self._looks.add(look)
        self._settled += look.images
        self._holds = self._holds and self._settled < FIRST

    def _ask_away(self, ask: Callable[[], Seen]) -> Seen | None:
        """What adapted weights say, whether they answer at present or are set aside."""
        if self.adapts:
            return ask()
        if self._aside is None:
            return None
        here = _cloned(self._movers)
        self._put(self._aside)
        try:
            return ask()
        finally:
            self._put(here)

    def _share(self) -> float:
        """Of batch statistics, under which weights adapt."""
        return float(self._way()["batch_weight"])

    def _way(self) -> dict[str, Any]:
        """How weights move when they do: method and settings."""
        if self.chooses:
            return stream_arguments_for(self.source)
        method, settings = self.start
        return {"method": method} | settings.of(find(method)[1]).as_json()

    def _decide(self) -> bool:
        """Who answers from now on; True if that is somebody else."""
        home = self._looks.home()
        picked = trying.pick(home, mirrored=self._mirrored)
        self._picked = picked.batch_weight
        possible = trying.possible_classes(self.source, home[0.0].classes)
        part, counted = self._looks.classes_per_batch(picked.batch_weight, possible)
        mixed, classes = part >= MIXED, f"{counted:.1f} of {possible} in a batch"
        before = self.adapts, self.settings.batch_weight
        gain = self._looks.gain_of_away(picked.batch_weight)
        if not mixed and self.guard and not self._few:
            self._few = True
            self.note({"batches": "gathered"}, f"few classes at a time ({classes})")
        if self.adapts and not mixed:
            self._set_aside(f"few classes at a time ({classes})")
        elif self.adapts and gain is not None and gain.better < -gain.error:
            reason = f"adapted weights agree less than statistics alone ({gain})"
            self._retreat(reason, clearly=gain.better < -CLEARLY * gain.error)
        elif self.adapts and gain is not None and picked.batch_weight == 0 and gain.better <= gain.error:
            self._set_aside(picked.reason)
        elif self._aside is not None and mixed and picked.batch_weight > 0 and gain is not None and gain.better >= 0:
            self._take_up(f"adapted weights agree as well again ({gain})")
        if not self.adapts and self._may_begin(picked.batch_weight, mixed):
            self._aside = None
            self._looks.leave_away_out()
            self.change(**self._way(), reason=f"{picked.reason}; classes are mixed ({classes}): weights move too")
        if not self.adapts and (
            picked.batch_weight != self.settings.batch_weight or self.settings.statistics != "source"
        ):
            self.change("bn", batch_weight=picked.batch_weight, statistics="source", reason=picked.reason)
        if before == (self.adapts, self.settings.batch_weight):
            return False
        self._said = []
        return True

    def _notice_classes(self, seen: Seen) -> None:
        """Lets go of the memory when batches have been of mixed classes for a while."""
        part = trying.part_of_even(seen, trying.possible_classes(self.source, seen.classes))
        self._mixed = [*self._mixed, part][-MEMORY:]
        if self._few and len(self._mixed) == MEMORY and sum(self._mixed) / MEMORY >= MIXED:
            self._few, self._mixed = False, []
            self.note({"batches": "one by one"}, "classes are mixed again")

    def _may_begin(self, batch_weight: float, mixed: bool) -> bool:
        wanted = self.chooses or find(self.start[0])[1].adapts is not None
        return wanted and batch_weight > 0 and mixed and self._settled >= FIRST and not self._refused

    def _retreat(self, reason: str, *, clearly: bool) -> None:
        """Half of the way home and on at half the rate; the second time, or if it is clear, all of it."""
        if self._holds or clearly or self._halved:
            self._set_aside(reason)
            return
        self._halved = True
        self.reset("weights", "optimizer", share=0.5, reason=reason)
        self._looks.leave_away_out()
        self.change(learning_rate=self.settings.learning_rate / 2, reason=reason)

    def _set_aside(self, reason: str) -> None:
        """Home answers. Adapted weights are kept if the world has changed, and given up if it is they that have."""
        if self._settled < FIRST:
            self._aside = _cloned(self._movers)
        else:
            self._refused = True
            self._looks.leave_away_out()
        self.reset("weights", "optimizer", reason=reason)
        self.change("bn", batch_weight=0.0, statistics="source", reason=reason)

    def _take_up(self, reason: str) -> None:
        """Adapted weights that were set aside answer again."""
        assert self._aside is not None
        self.change(**self._way(), reason=reason)
        self._put(self._aside)
        self._aside = None

    def _put(self, weights: list[dict[str, Tensor]]) -> None:
        for mover, own in zip(self._movers, weights, strict=True):
            live.unpack(mover, own)

    def _at_home(self) -> Ensemble:
        """The ensemble as it came, where the stream computes."""
        if self._home is None:
            members = self.source.members
            if self.device is not None:
                members = [copied(member, self.device) for member in members]
            self._home = Ensemble(members, class_mask=self.source.class_mask)
        return self._home

    def describe_state(self) -> dict[str, Any]:
        kept = {name: getattr(self, f"_{name}") for name in KEPT} | {"guard": self.guard, "chooses": self.chooses}
        kept |= {
            "said": [[seen.confidence for seen in each] for each in self._said],
            "looks": self._looks.describe(),
            "gathered": self._gathered.describe(),
        }
        return super().describe_state() | {"watch": kept | {"aside": self._aside is not None}}

    def pack_state(self) -> dict[str, dict[str, Tensor]]:
        fresh = {} if self._fresh is None else {"fresh": self._fresh}
        fresh |= {f"said/{i}/{j}": seen.labels for i, each in enumerate(self._said) for j, seen in enumerate(each)}
        groups = {"watch": self._looks.pack() | self._usual.pack() | fresh, "gathered": self._gathered.pack()}
        groups |= {f"aside-{i}": weights for i, weights in enumerate(self._aside or [])}
        return super().pack_state() | {name: group for name, group in groups.items() if group}

    def resume(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> None:
        with self._turn:
            super().resume(about, tensors)
            kept, group = about["watch"], tensors.get("live-watch", {})
            check_saved(kept, tensors, self._movers, models.classes_of(self.source.members[0].model))
            for name in KEPT:
                setattr(self, f"_{name}", kept[name])
            self._looks.unpack(kept["looks"], group)
            self._usual.unpack(group)
            self._fresh = group.get("fresh")
            classes = kept["looks"]["classes"]
            self._said = [
                tuple(Seen(group[f"said/{i}/{j}"], classes, value) for j, value in enumerate(values))
                for i, values in enumerate(kept["said"])
            ]
            self._gathered.unpack(kept["gathered"], tensors.get("live-gathered", {}), self._movers)
            members = range(len(self._movers))
            self._aside = [tensors[f"live-aside-{i}"] for i in members] if kept["aside"] else None


def _cloned(movers: Any) -> list[dict[str, Tensor]]:
    return [{name: tensor.clone() for name, tensor in live.pack(mover).items()} for mover in movers]
