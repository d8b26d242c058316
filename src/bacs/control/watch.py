"""What a guarded stream remembers: numbers, looks, what is usual, short questions, past images, weights aside."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from torch import Tensor

from bacs import models
from bacs.adaptation.loop import Mover
from bacs.control import candidates as trying
from bacs.control import standing
from bacs.control.aside import Aside
from bacs.control.class_runs import ClassRuns
from bacs.control.decide import Choices, Evidence
from bacs.control.gather import SMALL, Gathered
from bacs.control.looks import Gain, Look, Looks, is_clear
from bacs.control.probe import Votes
from bacs.control.questions import ShortQuestions
from bacs.control.saved import check_saved
from bacs.control.signals import Usual
from bacs.control.standing import RESERVE, Standing
from bacs.ensemble import Ensemble

WINDOW = 512
"""Images whose looks count."""

AGE = 4096
"""Images after which a look no longer counts."""

QUICK = 512
"""Images from one short question to the next; no more often."""


class Watch:
    """All of it, as it changes with every batch; what becomes of the stream is decided elsewhere."""

    def __init__(self, source: Ensemble, seed: int) -> None:
        self.source = source
        self.now, self.looks, self.usual = Standing(), Looks(WINDOW, AGE), Usual()
        self.short, self.gathered, self.aside = ShortQuestions(), Gathered(seed), Aside()
        self.class_runs = ClassRuns()

    def update(self, **numbers: Any) -> None:
        self.now = replace(self.now, **numbers)

    def earn(self, passes: int, images: int) -> None:
        self.now = standing.earn(self.now, passes, images)

    def notice_change(self, signals: Tensor, *, adapts: bool) -> str | None:
        """Why the world has changed, if it has; then all that was seen of the old one is forgotten."""
        together = self.usual.gather(signals, SMALL)
        if together is None:
            return None
        reason = self.usual.surprise_in(together)
        if reason is None and not self.now.few:  # in runs of classes, batches may jump as worlds do
            reason = self.usual.jump_to(together)
        if reason is not None:
            self.looks.all, self.usual = [], Usual()
            self.forget_answers()
            self.now = standing.begin_world(self.now, holds=adapts)
        self.usual.add(together)
        return reason

    def forget_answers(self) -> None:
        """Somebody else answers from now on, or of another world."""
        self.short.forget()
        self.class_runs.forget()

    @property
    def runs_are_seen(self) -> bool:
        """Whether classes arrive in runs, by the answers or by what home said of the batches that were looked at."""
        return self.class_runs.are_seen or self.looks.show_runs()

    def add_labels(self, seen: Votes) -> None:
        """Takes in the labels that a gathered batch was given."""
        self.class_runs.add(seen.labels[0], seen.classes)
        if self.now.few and self.class_runs.are_seen:
            self.update(runs=True)

    def gain_of_home(self, home: Ensemble, images: list[Tensor], rows: list[Tensor]) -> Gain:
        """How much better the members of home agree than those who answer, on the last batches that both were asked."""
        self.now = standing.pay(self.now, len(images[0]))
        (gain,) = self.short.ask(home, (0.0,), images, rows)
        return gain

    def notice_classes(self, seen: Votes) -> bool:
        """Whether batches have been of mixed classes for a while, and the memory is let go of."""
        before = self.now
        self.now = standing.count_classes(self.now, self._part_of_even(seen), even=self.class_runs.are_ruled_out)
        return before.few and not self.now.few

    def let_go_if_mixed(self, seen: Votes) -> bool:
        """Whether the first batch of a new world is of mixed classes, and the memory is let go of."""
        is_mixed = self.now.few and not self.now.runs and self._part_of_even(seen) >= trying.MIXED
        if is_mixed:
            self.now = standing.let_go(self.now)
        return is_mixed

    def _part_of_even(self, seen: Votes) -> float:
        return trying.part_of_even(seen, trying.possible_classes(self.source, seen.classes))

    def cost_of_look(self, passes: int) -> int:
        """In passes of one image; a single network also sees mirror images."""
        return passes * (2 if len(self.source) == 1 else 1)

    @property
    def memory_says_more(self) -> bool:
        """Whether to look because the memory has grown: soon after a change of the world, and less and less often."""
        return self.now.few and self.gathered.has_grown

    def look_is_due(self, chosen: Choices, images: int, cost: int, *, answered: bool) -> bool | None:
        """Whether to look at so many images: at first, and as often as the time for it allows.

        None where the answer to a short question decides it, which can be put if a whole batch was `answered`.
        """
        now = self.now
        if images < 2 or not chosen.guard:
            return images > 1 and not now.knows_world
        if not now.knows_world:
            return True
        last = self.looks.all[-1].image if self.looks.all else now.images - AGE
        if chosen.is_home or not answered or now.images - last >= AGE:
            return now.credit >= cost
        return None

    def home_is_better(self, chosen: Choices, home: Ensemble, images: list[Tensor], rows: list[Tensor]) -> bool:
        """Asks home now and then whether its members agree better than those who answer; if so, looks are forgotten."""
        now = self.now
        shares = sorted({0.0, now.picked if chosen.adapts and not now.few else 0.0})
        cost = len(shares) * len(images[0])
        if now.images - now.asked < QUICK or now.credit < cost + RESERVE or len(rows) == 1:
            return False
        self.now = standing.pay(replace(now, asked=now.images), cost)
        if not any(gain.better > 2 * gain.error for gain in self.short.ask(home, shares, images, rows)):
            return False
        self.looks.all = []  # of a world that has changed by and by
        self.short.forget()
        return True

    def take_in(self, look: Look, cost: int) -> Evidence:
        """What this look and those before it say together."""
        self.looks.add(look)
        if self.now.knows_world and self.looks.contradict(self.now.picked):
            self.looks.all = [look]  # of a world that has changed by and by
        self.now = standing.pay(self.now, cost)
        home = self.looks.home()
        self.now = standing.count_look(self.now, look.images, clear=is_clear(home))
        picked = trying.pick(home, mirrored=len(self.source) == 1, errors=self.now.errors_of_chance)
        self.update(picked=picked.batch_weight)
        possible = trying.possible_classes(self.source, home[0.0].classes)
        part, counted = self.looks.classes_per_batch(picked.batch_weight, possible)
        gain = self.looks.gain_of_away(picked.batch_weight)
        runs = not self.now.few and self.runs_are_seen
        return Evidence(picked, part, f"{counted:.1f} of {possible} in a batch", gain, runs)

    def describe(self) -> dict[str, Any]:
        """Its part of a manifest."""
        parts = {"looks": self.looks.describe(), "gathered": self.gathered.describe(), "said": self.short.describe()}
        return asdict(self.now) | parts | {"aside": bool(self.aside)}

    def pack(self) -> dict[str, dict[str, Tensor]]:
        """Its tensors, in groups."""
        watch = self.looks.pack() | self.usual.pack() | self.short.pack() | self.class_runs.pack()
        return {"watch": watch, "gathered": self.gathered.pack()} | self.aside.pack()

    def unpack(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]], movers: Sequence[Mover]) -> None:
        """Takes over what was described and packed; raises CheckpointError for what does not fit."""
        check_saved(about, tensors, movers, models.classes_of(self.source.members[0].model))
        group = tensors.get("live-watch", {})
        numbers = {name: value for name, value in about.items() if name in Standing.__dataclass_fields__}
        self.now = Standing(**numbers | {"mixed": tuple(about["mixed"])})
        self.looks.unpack(about["looks"], group)
        self.usual.unpack(group)
        self.class_runs.unpack(group)
        self.short.unpack(about["said"], group, about["looks"]["classes"])
        self.gathered.unpack(about["gathered"], tensors.get("live-gathered", {}), movers)
        self.aside = Aside([tensors[f"live-aside-{i}"] for i in range(len(movers))] if about["aside"] else None)
