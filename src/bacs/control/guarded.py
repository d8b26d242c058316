"""A stream that guards itself: it asks now and then whether what it does is better than what it came with.

A look asks the ensemble as it came, on the batch at hand, under every share of batch statistics, and decides on the
looks of the last images together. The first batches are all looked at; later ones as often as a share of the time
allows; and a batch that is unlike the last ones (`signals`), for then the world has changed. From that moment weights
hold still, until enough of the new world was seen. Adapted weights that agree less than statistics alone go half of
the way home, then all of it; in a new world they are set aside first, and taken up again if it was a short one: pure
noise, black frames, another camera for a minute.

`method="auto"` is such a stream that begins at home and moves weights where classes are mixed; with `guard=True` any
method begins as it would without, and is held back where it does harm.

Here is a batch's way; `watch` has what is remembered, `questions` what is asked, `decide` what follows from it.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from bacs.adaptation.statistics import Statistics
from bacs.control import probe as probing
from bacs.control.aside import Aside, copy_weights, put_weights
from bacs.control.decide import Choices, Decision, decide
from bacs.control.gather import SMALL
from bacs.control.looks import Look
from bacs.control.plans import BatchPlan, MemoryPlan, plan_batch, plan_memory
from bacs.control.probe import Votes
from bacs.control.questions import can_look, look_at_batch, look_at_memory
from bacs.control.saved import SavedGuardedStream
from bacs.control.signals import signals_of
from bacs.control.standing import PASSES_PER_STEP
from bacs.control.steps import stream_arguments_for
from bacs.control.watch import Watch
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.methods.catalogue import Method, find
from bacs.methods.online import Stream
from bacs.methods.prepare import copy_member
from bacs.methods.settings import Settings, check_guarded
from bacs.predictive import average


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
            if not parts:
                self._watch = Watch(self.source, self.seed)
                self._home: Ensemble | None = None

    def _follow(self, method: str | Method, given: Settings) -> None:
        if self.guard:
            check_guarded(given)
        super()._follow(method, given)

    def step_members(self, batch: Any) -> list[Tensor]:
        with self._turn:
            images, now = self._open_batch(batch), self._watch.now
            self._watch.update(images=now.images + len(images[0]))
            if not can_look(self.source, images):
                return self._keep(self._answer(images))
            if self.guard and (now.few or len(images[0]) < SMALL):
                return self._keep(self._follow_memory(images))
            return self._keep(self._follow_batch(images))

    def _follow_batch(self, images: list[Tensor]) -> list[Tensor]:
        """The answer to a batch by its own statistics, by what is best by the members' word once it was seen."""
        watched = self.guard and self.adapts
        rows = self._answer(images, (lambda logits: self._permits(logits, images)) if watched else None)
        self._watch.earn(PASSES_PER_STEP if self.adapts else 1, len(images[0]))
        surprised = self.guard and self._is_surprising(images, rows)
        p = torch.stack(rows).mean(dim=0)
        self._watch.class_runs.add(p.argmax(dim=1), p.shape[1], batch_weight=self.settings.batch_weight or 0.0)
        plan = plan_batch(self._watch.now, self._choices(), len(rows))
        cost = self._watch.cost_of_look(plan.passes(len(images[0])))
        in_runs = self.guard and self._watch.class_runs.are_seen
        if not surprised and not in_runs and not self._is_due(images, cost, rows, images):
            return rows

        def ask() -> Votes:
            if self.adapts and len(rows) > 1:  # which have said it already
                return probing.votes_in(average(rows))
            own = Ensemble(self.members, class_mask=self.source.class_mask, statistics=Statistics(self._share()))
            mirrored = len(rows) == 1
            return probing.look(own, PerMember(images), batch_size=len(images[0]), seed=self.seed, mirrored=mirrored)

        look = self._look_at_batch(plan, images, rows, self._away(ask))
        return self._answer(images, lambda logits: False) if self._decide(look, cost) else rows

    def _follow_memory(self, images: list[Tensor]) -> list[Tensor]:
        """The answer by the statistics of a memory; what is looked at and stepped on is drawn from it."""
        gathered = self._watch.gathered
        rows = gathered.answer(self._movers, images, self._threads)
        surprised = self._is_surprising(images, rows)
        p = average(rows).probabilities
        seen = Votes(p.argmax(dim=1)[None], p.shape[1], 0.0)
        whole = len(images[0]) >= SMALL
        if surprised:
            gathered.forget()
            if whole and self._watch.let_go_if_mixed(seen):
                self.note({"batches": "one by one"}, "classes are mixed in the new world")
            elif whole and self._watch.now.few:
                rows = self._return_if_home_is_better(images, rows)
        gathered.add(images, seen.labels[0])
        if whole:
            self._watch.add_labels(seen)
        self._watch.earn(1, len(images[0]))
        drawn = gathered.draw(len(self._movers))
        if drawn is not None and (gathered.is_telling or not self._watch.now.few):
            rows = self._follow_drawn(drawn, images, rows, surprised=surprised)
        if whole and self._watch.notice_classes(seen):
            self.note({"batches": "one by one"}, "classes are mixed again")
        return rows

    def _follow_drawn(
        self, drawn: list[Tensor], images: list[Tensor], rows: list[Tensor], *, surprised: bool
    ) -> list[Tensor]:
        """Steps on images of the memory, looks if it is time to, and normalises as it would them from now on."""
        gathered = self._watch.gathered
        self._watch.earn(PASSES_PER_STEP if self.adapts else int(self.settings.batch_weight != 0), len(drawn[0]))
        if self.adapts:
            self._answer(drawn, lambda logits: not self._watch.now.holds)
        plan = plan_memory(self._watch.now, self._choices(), grown=gathered.has_grown)
        cost = self._watch.cost_of_look(plan.passes())
        changed = False
        answered = rows if len(images[0]) >= SMALL else None
        grown = self._watch.memory_says_more(cost)
        ready = gathered.is_full or not self._watch.now.few
        if grown or (ready and (surprised or self._is_due(drawn, cost, answered, images))):
            changed = self._decide(self._look_at_memory(plan, drawn), cost)
        gathered.normalise_as(self._movers, drawn, self._threads)
        return gathered.answer(self._movers, images, self._threads) if changed else rows

    def _return_if_home_is_better(self, images: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
        """The answer by home, if in a new world its members agree better than those who go by the old one."""
        if self._choices().is_home or len(rows) == 1:
            return rows
        gain = self._watch.gain_of_home(self._at_home(), images, rows)
        if gain.better <= (0 if self.adapts else gain.error):  # weights must prove themselves anew
            return rows
        reason = f"members agree better under source statistics in the new world ({gain})"
        if self.adapts:
            self._carry_out(Decision("set aside", reason))
        else:
            self.change("bn", batch_weight=0.0, statistics="source", reason=reason)
        self._watch.forget_answers()
        self._watch.gathered.mixtures = None
        return self._watch.gathered.answer(self._movers, images, self._threads)

    def _permits(self, logits: list[Tensor], images: list[Tensor]) -> bool:
        """Whether weights may move on this batch: not in a world of which too little was seen."""
        rows = [own.softmax(dim=1) for own in logits]
        return not self._watch.now.holds and self._watch.usual.surprise_in(signals_of(images[0], rows)) is None

    def _is_surprising(self, images: list[Tensor], rows: list[Tensor]) -> bool:
        reason = self._watch.notice_change(signals_of(images[0], rows), adapts=self.adapts)
        if reason is not None:
            self.note({"looks": "anew"}, reason)
        return reason is not None

    def _look_at_batch(self, plan: BatchPlan, images: list[Tensor], rows: list[Tensor], away: Votes | None) -> Look:
        said = {} if plan.said is None else {plan.said: probing.votes_in(average(rows), trusting=True)}
        return look_at_batch(self._watch.now.images, self._at_home(), plan.shares, said, away, images, self.seed)

    def _look_at_memory(self, plan: MemoryPlan, drawn: list[Tensor]) -> Look:
        gathered, mask = self._watch.gathered, self.source.class_mask
        asked = gathered.recent(len(self.members), plan.images)
        if self._watch.now.few and gathered.has_grown:
            self._watch.looks.all = []  # by the statistics of fewer images
        gathered.asked = len(gathered.labels)
        away = None
        if plan.away:
            away = self._away(lambda: gathered.ask(self.members, self._share(), drawn, asked, mask, self._threads)[0])
        about = self._watch.now.images, self._at_home(), plan.shares
        return look_at_memory(*about, away, gathered, drawn, asked, self._threads)

    def _is_due(self, looked_at: list[Tensor], cost: int, rows: list[Tensor] | None, answered: list[Tensor]) -> bool:
        """Whether to look: at first, when home would do better, and else as often as the time for it allows."""
        chosen = self._choices()
        due = self._watch.look_is_due(chosen, len(looked_at[0]), cost, answered=rows is not None)
        if due is not None:
            return due
        assert rows is not None
        return self._watch.home_is_better(chosen, self._at_home(), answered, rows)

    def _choices(self) -> Choices:
        assert self.settings.batch_weight is not None
        may_adapt = self.chooses or find(self.start[0])[1].adapts is not None
        in_force = self.adapts, self.settings.batch_weight, self.settings.statistics
        return Choices(*in_force, bool(self._watch.aside), may_adapt, self.guard)

    def _decide(self, look: Look, cost: int) -> bool:
        """Who answers from now on; True if that is somebody else."""
        before, chosen = (self.adapts, self.settings.batch_weight), self._choices()
        evidence = self._watch.take_in(look, cost)
        for decision in decide(self._watch.now, chosen, evidence):
            self._carry_out(decision)
        if before == (self.adapts, self.settings.batch_weight):
            return False
        self._watch.forget_answers()
        return True

    def _carry_out(self, decision: Decision) -> None:
        watch, (what, reason) = self._watch, decision
        if what == "gather":
            watch.update(few=True, runs=watch.runs_are_seen, picked=0.0)
            self.note({"batches": "gathered"}, reason)
            if not self.adapts and self.settings.batch_weight != 0:
                self.change("bn", batch_weight=0.0, statistics="source", reason=reason)
        elif what == "set aside":
            if watch.now.knows_world:
                watch.update(refused=True)
                watch.looks.leave_away_out()
            else:
                watch.aside = Aside(copy_weights(self._movers))
            self.reset("weights", "optimizer", reason=reason)
            self.change("bn", batch_weight=0.0, statistics="source", reason=reason)
        elif what == "go halfway":
            watch.update(halved=True)
            self.reset("weights", "optimizer", share=0.5, reason=reason)
            watch.looks.leave_away_out()
            self.change(learning_rate=self.settings.learning_rate / 2, reason=reason)
        elif what == "take up":
            assert watch.aside.weights is not None
            self.change(**self._way(), reason=reason)
            put_weights(self._movers, watch.aside.weights)
            watch.aside = Aside()
        elif what == "begin":
            watch.aside = Aside()
            watch.looks.leave_away_out()
            self.change(**self._way(), reason=reason)
        else:
            self.change("bn", batch_weight=watch.now.picked, statistics="source", reason=reason)

    def _away(self, ask: Callable[[], Votes]) -> Votes | None:
        """What adapted weights say, whether they answer at present or are set aside."""
        if self.adapts:
            return ask()
        if not self._watch.aside:
            return None
        with self._watch.aside.in_place(self._movers):
            return ask()

    def _share(self) -> float:
        """Of batch statistics, under which weights adapt."""
        return float(self._way()["batch_weight"])

    def _way(self) -> dict[str, Any]:
        """How weights move when they do: method and settings."""
        if self.chooses:
            return stream_arguments_for(self.source)
        method, settings = self.start
        return {"method": method} | settings.of(find(method)[1]).as_json()

    def _at_home(self) -> Ensemble:
        """The ensemble as it came, where the stream computes."""
        if self._home is None:
            members = self.source.members
            if self.device is not None:
                members = [copy_member(member, self.device) for member in members]
            self._home = Ensemble(members, class_mask=self.source.class_mask)
        return self._home

    def describe_state(self) -> dict[str, Any]:
        who = {"guard": self.guard, "chooses": self.chooses}
        return super().describe_state() | {"watch": self._watch.describe() | who}

    def pack_state(self) -> dict[str, dict[str, Tensor]]:
        return super().pack_state() | {name: group for name, group in self._watch.pack().items() if group}

    def resume(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> None:
        with self._turn:
            super().resume(about, tensors)
            self._watch.unpack(about["watch"], tensors, self._movers)
