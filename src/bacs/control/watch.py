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

from typing import Any

import torch
from torch import Tensor

from bacs.adaptation.statistics import Statistics
from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.auto import check_taken
from bacs.control.candidates import MIXED, WEIGHTS
from bacs.control.gather import SMALL, Gathered
from bacs.control.looks import Look, Looks
from bacs.control.probe import Seen
from bacs.control.signals import Usual, signals_of
from bacs.control.steps import stream_arguments_for
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.methods import live
from bacs.methods.catalogue import Method, find
from bacs.methods.online import Stream
from bacs.methods.prepare import copied, with_class_mask
from bacs.methods.settings import AGREEMENT, Settings
from bacs.predictive import average

TAKEN = ("class_mask", "seed", "device", "compile", "guard")
FIRST = 256
"""Images that are looked at before weights may move, and again after a change of the world."""

WINDOW = 512
"""Images whose looks count."""

SHARE = 0.15
"""What looks may cost, as a part of all other passes."""

PASSES_PER_STEP = 3
"""Of a step that moves weights, counted in forward passes: one forward, one backward of about two."""

GRACE = 4 * len(WEIGHTS)
"""Passes that looks may take in advance: those of the first images."""

CLEARLY = 3.0
"""Standard errors by which adapted weights must agree less to be given up at once."""


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
            self._looks = Looks(WINDOW)
            self._aside: list[dict[str, Tensor]] | None = None  # adapted weights that do not answer at present
            self._gathered = Gathered()
            self._home: Ensemble | None = None
            self._credit = float(GRACE)  # passes that looks may take
            self._begin_world()

    def _begin_world(self) -> None:
        self._looks.all, self._usual = [], Usual()
        self._settled = 0  # images looked at in this world
        self._refused = False  # whether adapted weights were given up in it
        self._halved = False  # whether they went half of the way home
        self._holds = False  # whether they wait until enough of it was seen

    def step_members(self, batch: Any) -> list[Tensor]:
        with self._turn:
            images = self._opened(batch)
            if not self._can_look(images):
                return self._keep(self._answer(images))
            if len(images[0]) >= SMALL or not self.guard:
                return self._keep(self._watch(images))
            rows = self._gathered.answer(self._movers, images, self._threads)
            if (together := self._gathered.add(images)) is not None:
                self._watch(together)
                self._gathered.settle(self._movers, together, self._threads)
            return self._keep(rows)

    def _can_look(self, images: list[Tensor]) -> bool:
        if trying.nothing_to_try(self.source) is not None:
            return False
        return not self._mirrored or probing.can_be_mirrored(images[0])

    @property
    def _mirrored(self) -> bool:
        return len(self.source) == 1

    def _watch(self, images: list[Tensor]) -> list[Tensor]:
        """The answer to a batch, by what is best by the members' own word after it was seen."""
        guarded = self.guard and self.adapts
        rows = self._answer(images, (lambda logits: self._permits(logits, images)) if guarded else None)
        self._credit += SHARE * (PASSES_PER_STEP if self.adapts else 1)
        surprised = self.guard and self._is_surprising(images, rows)
        if (surprised or self._is_due()) and len(images[0]) > 1:
            self._look(images, rows, free=surprised)
            if self._decide():
                rows = self._answer(images, lambda logits: False)
        return rows

    def _permits(self, logits: list[Tensor], images: list[Tensor]) -> bool:
        """Whether weights may move on this batch: not in a world of which too little was seen."""
        rows = [own.softmax(dim=1) for own in logits]
        return not self._holds and self._usual.surprise_in(signals_of(images[0], rows)) is None

    def _is_surprising(self, images: list[Tensor], rows: list[Tensor]) -> bool:
        """Whether the world has changed; then all that was seen of the old one is forgotten."""
        signals = signals_of(images[0], rows)
        reason = self._usual.surprise_in(signals)
        if reason is not None:
            self._begin_world()
            self._holds = self.adapts
            self.note({"looks": "anew"}, reason)
        self._usual.add(signals)
        return reason is not None

    def _is_due(self) -> bool:
        if not self.guard:
            return self._settled < FIRST
        in_advance = GRACE if self._settled < FIRST else 0
        return self._credit + in_advance >= self._cost_of_a_look()

    def _cost_of_a_look(self) -> int:
        return (len(WEIGHTS) + (self._aside is not None)) * (2 if self._mirrored else 1)

    def _look(self, images: list[Tensor], rows: list[Tensor], *, free: bool) -> None:
        """Asks the ensemble as it came, and adapted weights, about this batch."""
        if not free:
            self._credit -= self._cost_of_a_look()
        how: dict[str, Any] = {"batch_size": len(images[0]), "seed": self.seed, "mirrored": self._mirrored}
        home = trying.try_weights(self._at_home(), PerMember(images), **how)
        away = None
        if self.adapts and not self._mirrored:
            away = probing.seen_in(average(rows))
        elif self.adapts:
            away = self._ask(images)
        elif self._aside is not None:
            here = _cloned(self._movers)
            self._put(self._aside)
            away = self._ask(images)
            self._put(here)
        self._looks.add(Look(home, away))
        self._settled += len(images[0])
        self._holds = self._holds and self._settled < FIRST

    def _ask(self, images: list[Tensor]) -> Seen:
        """What the weights that the members have now say of a batch, by the statistics that they adapt under."""
        share = float(self._way()["batch_weight"])
        own = Ensemble(self.members, class_mask=self.source.class_mask, statistics=Statistics(share))
        how: dict[str, Any] = {"batch_size": len(images[0]), "seed": self.seed, "mirrored": self._mirrored}
        return probing.look(own, PerMember(images), **how)

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
        possible = trying.possible_classes(self.source, home[0.0].classes)
        part, counted = self._looks.classes_per_batch(picked.batch_weight, possible)
        mixed, classes = part >= MIXED, f"{counted:.1f} of {possible} in a batch"
        before = self.adapts, self.settings.batch_weight
        gain = self._looks.gain_of_away(picked.batch_weight)
        if self.adapts and not mixed:
            self._set_aside(f"few classes at a time ({classes})")
        elif self.adapts and gain is not None and gain.better < -gain.error:
            reason = f"adapted weights agree less than statistics alone ({gain})"
            self._retreat(reason, clearly=gain.better < -CLEARLY * gain.error)
        elif self.adapts and gain is not None and picked.batch_weight == 0 and gain.better <= gain.error:
            self._set_aside(picked.reason)
        elif self._aside is not None and mixed and gain is not None and gain.better > gain.error:
            self._take_up(f"adapted weights agree better again ({gain})")
        if not self.adapts and self._may_begin(picked.batch_weight, mixed):
            self._aside = None
            self._looks.leave_away_out()
            self.change(**self._way(), reason=f"{picked.reason}; classes are mixed ({classes}): weights move too")
        if not self.adapts and (
            picked.batch_weight != self.settings.batch_weight or self.settings.statistics != "source"
        ):
            self.change("bn", batch_weight=picked.batch_weight, statistics="source", reason=picked.reason)
        return before != (self.adapts, self.settings.batch_weight)

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
        names = ("settled", "refused", "halved", "holds", "credit")
        kept = {name: getattr(self, f"_{name}") for name in names} | {"guard": self.guard, "chooses": self.chooses}
        kept |= {"looks": self._looks.describe(), "gathered": self._gathered.describe()}
        return super().describe_state() | {"watch": kept | {"aside": self._aside is not None}}

    def pack_state(self) -> dict[str, dict[str, Tensor]]:
        groups = {"watch": self._looks.pack() | self._usual.pack(), "gathered": self._gathered.pack()}
        groups |= {f"aside-{i}": weights for i, weights in enumerate(self._aside or [])}
        return super().pack_state() | {name: group for name, group in groups.items() if group}

    def resume(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> None:
        with self._turn:
            super().resume(about, tensors)
            kept, group = about["watch"], tensors.get("live-watch", {})
            for name in ("settled", "refused", "halved", "holds", "credit"):
                setattr(self, f"_{name}", kept[name])
            self._looks.unpack(kept["looks"], group)
            self._usual.unpack(group)
            self._gathered.unpack(kept["gathered"], tensors.get("live-gathered", {}), self._movers)
            members = range(len(self._movers))
            self._aside = [tensors[f"live-aside-{i}"] for i in members] if kept["aside"] else None


def _cloned(movers: Any) -> list[dict[str, Tensor]]:
    return [{name: tensor.clone() for name, tensor in live.pack(mover).items()} for mover in movers]
