"""A stream that guards itself: it asks now and then whether what it does is better than what it came with.

A look asks the ensemble as it came, on the batch at hand, under every share of batch statistics, and decides on the
looks of the last images together. The first batches are all looked at; later ones as often as a share of the time
allows; and a batch that is unlike the last ones (`signals`), for then the world has changed. From that moment weights
hold still, until enough of the new world was seen. Adapted weights that agree less than statistics alone go half of
the way home, then all of it; in a new world they are set aside first, and taken up again if it was a short one: pure
noise, black frames, another camera for a minute.

`method="auto"` is such a stream that begins at home and moves weights where classes are mixed; with `guard=True` any
method begins as it would without, and is held back where it does harm.

Here is a batch's way; `watch` has what is remembered, `questions` what is asked, `decide` what follows from it, and
`steered` carries it out.
"""

from typing import Any

import torch
from torch import Tensor

from bacs.adaptation.loop import Permit
from bacs.adaptation.statistics import Statistics
from bacs.control import probe as probing
from bacs.control.decide import Decision, home_takes_over
from bacs.control.gather import SMALL
from bacs.control.looks import Look
from bacs.control.plans import BatchPlan, MemoryPlan, plan_batch, plan_memory
from bacs.control.probe import Votes
from bacs.control.questions import can_look, look_at_batch, look_at_memory
from bacs.control.signals import signals_of
from bacs.control.standing import PASSES_PER_STEP
from bacs.control.steered import SteeredStream
from bacs.control.steps import share_of_way_home
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.methods import live
from bacs.predictive import average


class GuardedStream(SteeredStream):
    """A stream that watches itself. Every decision is in `history`, with its reason."""

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
        rows = self._step(images, lambda logits: self._permits(logits, images)) if watched else self._answer(images)
        self._watch.earn(PASSES_PER_STEP if self.adapts else 1, len(images[0]))
        surprised = self.guard and self._is_surprising(images, rows)
        if not surprised:  # a batch in which the world changes may be of two
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
        if whole and self._watch.now.few and self._watch.usual.is_blind:
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
            self._step(drawn, lambda logits: not self._watch.now.holds)
        plan = plan_memory(self._watch.now, self._choices(), grown=gathered.has_grown)
        cost = self._watch.cost_of_look(plan.passes())
        changed = False
        answered = rows if len(images[0]) >= SMALL else None
        grown = self._watch.memory_says_more
        ready = gathered.is_full or not self._watch.now.few
        if grown or (ready and (surprised or self._is_due(drawn, cost, answered, images))):
            changed = self._decide(self._look_at_memory(plan, drawn), cost)
        gathered.normalise_as(self._movers, drawn, self._threads)
        return gathered.answer(self._movers, images, self._threads) if changed else rows

    def _return_if_home_is_better(self, images: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
        """The answer by home, if those who answer in a new world do not agree better."""
        if self._choices().is_home or len(rows) == 1:
            return rows
        gain = self._watch.gain_of_home(self._at_home(), images, rows)
        if not home_takes_over(gain, proven=bool(self._watch.looks.all)):
            return rows
        reason = f"in the new world members agree under source statistics as well as those who answered ({gain})"
        if self.adapts:
            self._carry_out(Decision("set aside", reason))
        else:
            self.change("bn", batch_weight=0.0, statistics="source", reason=reason)
        self._watch.forget_answers()
        self._watch.gathered.mixtures = None
        return self._watch.gathered.answer(self._movers, images, self._threads)

    def _step(self, images: list[Tensor], permit: Permit) -> list[Tensor]:
        """The answer to a batch; weights that moved on it go a little of the way home, so that old worlds fade."""
        moved = False

        def note(logits: list[Tensor]) -> bool:
            nonlocal moved
            moved = permit(logits)
            return moved

        rows = self._answer(images, note)
        if moved and self.chooses:
            share = share_of_way_home(self.settings.learning_rate)
            for mover, member in zip(self._movers, self._at_home().members, strict=True):
                live.go_back(mover, member, ("weights",), share)
        return rows

    def _permits(self, logits: list[Tensor], images: list[Tensor]) -> bool:
        """Whether weights may move on this batch: not in a world of which too little was seen."""
        rows = [own.softmax(dim=1) for own in logits]
        return not self._watch.now.holds and self._watch.usual.surprise_in(signals_of(images[0], rows)) is None

    def _is_surprising(self, images: list[Tensor], rows: list[Tensor]) -> bool:
        halved = self._watch.now.halved
        reason = self._watch.notice_change(signals_of(images[0], rows), adapts=self.adapts)
        if reason is not None:
            self.note({"looks": "anew"}, reason)
            if halved and self.adapts:  # which was for the old world
                self.change(learning_rate=self._way()["learning_rate"], reason=reason)
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
