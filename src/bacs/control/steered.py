"""A stream that can be told who answers from now on: home under some share of batch statistics, or adapted weights.

`decide` says what is to change; here it is carried out, and all that it needs is remembered and saved.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from bacs.control.aside import Aside, copy_weights, put_weights
from bacs.control.decide import Choices, Decision, decide
from bacs.control.looks import Look
from bacs.control.probe import Votes
from bacs.control.saved import SavedGuardedStream
from bacs.control.steps import stream_arguments_for
from bacs.control.watch import Watch
from bacs.ensemble import Ensemble
from bacs.methods.catalogue import Method, find
from bacs.methods.online import Stream
from bacs.methods.prepare import copy_member
from bacs.methods.settings import Settings, check_guarded


class SteeredStream(Stream):
    """A stream, what it remembers of itself, and how each decision is carried out."""

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
