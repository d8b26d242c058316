"""The online protocol. One pass; each batch is predicted and adapted to as it arrives."""

from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

import torch
from torch import Tensor

from bacs import checkpoints, inputs, models
from bacs.adaptation import loop
from bacs.adaptation.forward import probabilities
from bacs.adaptation.loop import Mover, Permit
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
from bacs.errors import unknown_name
from bacs.inputs import PerMember
from bacs.methods import live
from bacs.methods.catalogue import METHODS, Method, find
from bacs.methods.observed import Event, Observed, SavedStream, observe_step
from bacs.methods.prepare import check_choice, groups_of, mover_for, working_copy
from bacs.methods.recent import Recent
from bacs.methods.settings import AGREEMENT, NAMES, Settings
from bacs.predictive import Predictive, average
from bacs.temperature import tempered
from bacs.threads import Threads, can_share

PARTS = ("weights", "statistics", "optimizer")


class Stream:
    """An ensemble that follows its inputs. Made by `bacs.stream`; the ensemble it began with stays as it was.

    It may be used by several threads: they take turns.
    """

    SAVED: ClassVar[type] = SavedStream  # what its part of a manifest is checked against

    def __init__(
        self,
        ensemble: Ensemble,
        method: str | Method,
        settings: Settings,
        device: torch.device | str | None = None,
        compiled: bool = False,
        seed: int = 0,
    ) -> None:
        inputs.check_seed(seed)
        if device is not None:
            Place(device=str(device)).check()
        self.source = ensemble
        self.device, self.compiled, self.seed = device, compiled, seed
        self.batch_size: int | None = None  # what a folder is cut to; of no use to `step`, and saved for who goes on
        self.beside: dict[str, Any] = {}  # likewise: what belongs to this state elsewhere, such as rows of a table
        self._turn = RLock()
        self.start = method, settings
        self._written: checkpoints.Entries = {}  # files of the source ensemble, which never change
        self.reset()

    def reset(self, *parts: str, share: float = 1.0, reason: str = "") -> None:
        """Back to the start, bit for bit: weights, statistics, the optimiser's memory, and what was changed since.

        With parts named (`weights`, `statistics`, `optimizer`) only these go back, and the stream goes on. Weights may
        go back a `share` of their way: half of it with 0.5.
        """
        for part in parts:
            if part not in PARTS:
                raise unknown_name("parts", part, PARTS)
        if not 0 < share <= 1 or (share < 1 and "weights" not in parts):
            raise ValueError(f"share must be above 0 and at most 1, and is for 'weights' alone; got {share!r}")
        with self._turn:
            if parts:
                self._look_back()
                for mover, member in zip(self._movers, self.source.members, strict=True):
                    live.go_back(mover, member, parts, share)
                self.note({"reset": list(parts)} | ({"share": share} if share < 1 else {}), reason)
                return
            self.steps = 0
            self.history: list[Event] = []
            self._rows: list[Tensor] | None = None  # the members' predictions of the last step
            self._observed: Observed | None = None
            self._members = [working_copy(member, self.device) for member in self.source.members]
            self._threads = Threads(
                len(self._members), allowed=can_share(PerMember(), [own.model for own in self._members])
            )
            self._movers: list[Mover] = []
            self._recent = Recent()
            self._probe: list[Tensor] | None = None  # a few images, to try later choices on
            self._follow(*self.start)

    def change(self, method: str | Method | None = None, *, reason: str = "", **settings: Any) -> None:
        """Other choices from the next step on: the method, or any argument of `bacs.stream` that is a setting.

        Weights, statistics and, where the same optimiser goes on with the same parameters, its memory stay.
        """
        for name in settings:
            if name not in NAMES:
                raise unknown_name("settings", name, NAMES)
        with self._turn:
            self._look_back()
            before = {"method": self.method_name, **self.settings.as_json()}
            self._follow(self._method if method is None else method, replace(self._given, **settings))
            after = {"method": self.method_name, **self.settings.as_json()}
            what = {name: [before[name], value] for name, value in after.items() if value != before[name]}
            if what:
                self.note(what, reason)

    def _follow(self, method: str | Method, given: Settings) -> None:
        """Goes on by this method and these settings; raises before any change."""
        name, row = find(method)
        chosen = complete_settings(self.source, row, given, self._probe)
        if not self._movers or not live.adjust(self._movers, row, self._method, chosen, self.settings):
            movers = []
            for index, (own, member) in enumerate(zip(self._members, self.source.members, strict=True)):
                live.unfreeze(own.model, member.model)
                how = {"compiled": self.compiled, "seed": self.seed}
                mover = mover_for(own, row, chosen, self.source.class_mask, **how)
                if self._movers:
                    live.take_over(mover, self._movers[index])
                movers.append(mover)
            self._movers = movers
        self.method_name, self._method, self._given, self.settings = name, row, given, chosen

    def step(self, batch: Any) -> Tensor:
        """Probabilities [batch, classes] of the arriving batch; then every member takes one step on it.

        Predictions come from the forward pass that the step needs anyway. A batch that is no batch of images
        raises before any member has changed; a member that has diverged raises too, and then `reset` is the way on.
        """
        return self.source.cast_like_members(self.step_predictive(batch).probabilities)

    def step_predictive(self, batch: Any) -> Predictive:
        """As `step`, in float64 and with what is known of the members beside their mean."""
        return average(self.step_members(batch))

    def step_members(self, batch: Any) -> list[Tensor]:
        """As `step`, with the float64 probabilities of each member apart."""
        with self._turn:
            return self._keep(self._answer(self._open_batch(batch)))

    def _open_batch(self, batch: Any) -> list[Tensor]:
        """The members' images of a batch, checked; the first ones also against the choices."""
        views = inputs.views_of(batch, len(self._movers))
        # What members share is one tensor, so that whoever keeps images can tell, and keeps and saves them once.
        opened = {id(view): inputs.check_values(inputs.as_batch(view)) for view in views}
        images = [opened[id(view)] for view in views]
        if self.steps == 0:
            self._probe = [own[:2] for own in images]
            self.source.check_batches(self._probe)
            check_choice(self.source, self._method, self.settings, self._probe)
        return images

    def _answer(self, images: list[Tensor], permit: Permit | None = None) -> list[Tensor]:
        """Each member's probabilities, at temperature 1 where it follows agreement; then all take a step, if permitted.

        Who asks for a permission moves in lockstep: it is given or refused when all have seen the batch.
        """

        def step_group(group: list[int]) -> list[Tensor]:
            movers, batches = [self._movers[i] for i in group], [images[i] for i in group]
            logits = loop.step(movers, batches, self._threads if len(group) > 1 else None, permit)
            return [probabilities(rows, self.source.class_mask, temperature=warmth).cpu() for rows in logits]

        warmth = 1.0 if self.settings.temperature == AGREEMENT else self.temperature
        if permit is not None:
            return step_group(list(range(len(self._movers))))
        groups = groups_of(len(self._movers), self._method, self.settings)
        return [rows for group in self._threads.map(step_group, groups) for rows in group]

    def _keep(self, rows: list[Tensor]) -> list[Tensor]:
        """What is answered, at the temperature of the stream, and remembered as the last step."""
        if self.settings.temperature == AGREEMENT:
            self._recent.add(rows, self.source.reference)
            rows = [tempered(own, self.temperature) for own in rows]
        self._rows, self._observed = rows, None
        self.steps += 1
        every = self.settings.reset_every
        if every is not None and self.steps % every == 0:
            self.reset(*PARTS, reason=f"every {every} steps" if every > 1 else "every step")
        return rows

    @property
    def temperature(self) -> float:
        """Of the predictions: as given, by the agreement of the last images, else the ensemble's own."""
        given = self.settings.temperature
        if given == AGREEMENT:
            return self._recent.temperature
        return self.source.temperature if given is None else float(given)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as they stand; they go on changing with the stream."""
        return tuple(self._members)

    @property
    def observed(self) -> Observed | None:
        """What the last step saw; None before the first. Computed when it is asked for."""
        with self._turn:
            self._look_back()
            return self._observed

    @property
    def begun_with(self) -> str:
        """The method that it was made with."""
        return find(self.start[0])[0]

    def note(self, what: dict[str, Any], reason: str) -> None:
        """Adds a decision to `history`."""
        self.history.append(Event(self.steps, what, reason))

    def _look_back(self) -> None:
        """Computes what the last step saw, before anything else becomes of weights and settings."""
        if self._observed is not None or self._rows is None:
            return
        seen = self._rows, self._members
        self._observed = observe_step(self.steps, *seen, self._method, self.settings)

    def save(self, path: str | Path) -> None:
        """Writes the stream as it stands; `bacs.load` brings it back and it goes on as if never stopped.

        The ensemble that it began with is written once; later calls leave its files as they are.
        """
        if METHODS.get(self.method_name) != self._method or not isinstance(self.start[0], str):
            raise ValueError("a stream with a method outside bacs.METHODS cannot be saved: add the method there first")
        with self._turn:
            seen = self.observed
            about = {
                "method": self.method_name,
                "settings": self._given.as_json(),
                "start": {"method": self.start[0], "settings": self.start[1].as_json()},
                "steps": self.steps,
                "device": None if self.device is None else str(self.device),
                "compile": self.compiled,
                "seed": self.seed,
                "batch_size": self.batch_size,
                "beside": self.beside,
                "observed": None if seen is None else seen._asdict(),
                "history": [event._asdict() for event in self.history],
                **self.describe_state(),
            }
            kept = checkpoints.reusable_entries(path, self._written)
            manifest, tensors = self.source.describe(), {} if kept else self.source.tensors()
            tensors |= {f"live-{index}": live.pack(mover) for index, mover in enumerate(self._movers)}
            tensors |= {f"live-{name}": group for name, group in self.pack_state().items()}
            entries = checkpoints.write(path, manifest | {"kind": "stream", "stream": about}, tensors, kept=kept)
            self._written = {name: entry for name, entry in entries.items() if not name.startswith("live-")}

    def describe_state(self) -> dict[str, Any]:
        """What a stream knows beside its members, for the manifest of a saved one."""
        return {"recent": self._recent.describe()}

    def pack_state(self) -> dict[str, dict[str, Tensor]]:
        """The tensors of the same, in groups that are not empty."""
        return {name: group for name, group in {"recent": self._recent.pack()}.items() if group}

    def resume(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> None:
        """Takes over what `save` wrote: the choices in force, and each member as it stood."""
        with self._turn:
            self._follow(about["method"], Settings(**about["settings"]))
            self.steps = about["steps"]
            self.batch_size, self.beside = about.get("batch_size"), about.get("beside", {})
            for index, mover in enumerate(self._movers):
                live.check_weights(mover, tensors[f"live-{index}"])
                live.unpack(mover, tensors[f"live-{index}"])
                mover.steps = self.steps
            if "recent" in about:
                classes = models.classes_of(self.source.members[0].model)
                how = {"members": len(self._movers), "classes": classes}
                self._recent.unpack(about["recent"], tensors.get("live-recent", {}), **how)
            self.history = [Event(**event) for event in about.get("history", [])]
            seen = about.get("observed")
            self._observed = None if seen is None else Observed(**seen | {"moved": tuple(seen["moved"])})


def complete_settings(
    ensemble: Ensemble, method: Method, given: Settings, probe: list[Tensor] | None = None
) -> Settings:
    """The settings of a stream with nothing left open; raises for what a stream cannot do."""
    chosen = given.of(method)
    if chosen.statistics == "accumulated":
        raise ValueError("statistics must not be 'accumulated' for a stream, which has no end: 'running' follows it")
    check_choice(ensemble, method, chosen, probe)
    return chosen
