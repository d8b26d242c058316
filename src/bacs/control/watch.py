"""`method="auto"` online: a stream that chooses on its first batches, watches itself, and chooses again.

A look asks the ensemble as it came, on the batch at hand, under every share of batch statistics, and decides on the
looks of the last images together. The first batches are all looked at, later ones now and then, and anew from the
moment at which members suddenly agree more or less than before: then the world has changed.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bacs import inputs
from bacs.agreement import per_image
from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.auto import check_taken
from bacs.control.candidates import ANCHOR, MIXED, WEIGHTS
from bacs.control.probe import Seen
from bacs.control.steps import stream_arguments_for
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember
from bacs.methods.online import Stream
from bacs.methods.prepare import copied, with_class_mask
from bacs.methods.settings import AGREEMENT, Settings
from bacs.predictive import average

TAKEN = ("class_mask", "seed", "device", "compile")
FIRST = 256
"""Images that are looked at before weights may move, and again after a change of the world."""

WINDOW = 512
"""Images whose looks count."""

EVERY = 16
"""Steps from look to look once the first images have passed."""

SURPRISE = 4.0
"""Standard errors by which a batch's agreement must leave that of the batches before it to be a change of the world."""

MEMORY = 8
"""Batches over which that agreement is averaged."""


def stream_by_choice(ensemble: Ensemble, **given: Any) -> "AutoStream":
    """A stream that decides for itself; arguments as in `bacs.stream`, less what it chooses."""
    check_taken(given, TAKEN)
    source = with_class_mask(ensemble, given.get("class_mask"))
    return AutoStream(source, given.get("device"), given.get("compile", False), given.get("seed", 0))


class AutoStream(Stream):
    """A stream under `auto`. Every decision is in `history`, with its reason."""

    def __init__(
        self, ensemble: Ensemble, device: torch.device | str | None = None, compiled: bool = False, seed: int = 0
    ) -> None:
        warmth = AGREEMENT if len(ensemble) > 1 else None
        super().__init__(ensemble, "bn", Settings(batch_weight=0.0, temperature=warmth), device, compiled, seed)

    @property
    def begun_with(self) -> str:
        return "auto"

    def reset(self, *parts: str, reason: str = "") -> None:
        with self._turn:
            super().reset(*parts, reason=reason)
            if not parts:
                self._looks: list[dict[float, Seen]] = []
                self._own: list[Seen] = []  # of the same batches, as they were predicted; since weights move
                self._settled = 0  # images looked at since the world changed
                self._refused = False  # whether adapted weights were taken back, in this world
                self._usual: list[Tensor] = []  # agreement by image, of the last batches
                self._last_look = -EVERY
                self._home: Ensemble | None = None

    def step_members(self, batch: Any) -> list[Tensor]:
        with self._turn:
            views = [inputs.checked(torch.as_tensor(view)) for view in inputs.views_of(batch, len(self.source))]
            looked = self._is_due(views) and self._look(PerMember(views))
            rows = super().step_members(PerMember(views))
            predictive = average(rows)
            if looked and self.adapts:
                self._own.append(probing.seen_in(predictive))
                self._check()
            self._notice(per_image(predictive.labels) if len(rows) > 1 else None)
            return rows

    @property
    def adapts(self) -> bool:
        """Whether weights move at present."""
        return self._method.adapts is not None

    @property
    def _mirrored(self) -> bool:
        return len(self.source) == 1

    def _is_due(self, views: Sequence[Tensor]) -> bool:
        if trying.nothing_to_try(self.source) is not None or len(views[0]) < 2:
            return False
        if self._mirrored and not probing.can_be_mirrored(views[0]):
            return False
        return self._settled < FIRST or self.steps - self._last_look >= EVERY

    def _look(self, views: PerMember) -> bool:
        """Asks the ensemble as it came about this batch, and decides on what the window shows."""
        how = {"batch_size": len(views[0]), "seed": self.seed, "mirrored": self._mirrored}
        self._looks.append(trying.try_weights(self._at_home(), views, **how))
        self._last_look = self.steps
        self._settled += len(views[0])
        while len(self._looks) > 1 and self._seen_images() > WINDOW:
            self._looks.pop(0)
        window = self._window()
        picked = trying.pick(window, mirrored=self._mirrored)
        mixed, counted = self._classes(picked.batch_weight)
        if picked.batch_weight > 0 and mixed and self._settled >= FIRST and not self._refused:
            if not self.adapts:
                self._own = []
                arguments = stream_arguments_for(self.source)
                self.change(**arguments, reason=f"{picked.reason}; classes are mixed ({counted}): weights move too")
            return True
        if self.adapts:
            why = picked.reason if mixed else f"few classes at a time ({counted})"
            self.reset("weights", "optimizer", reason=why)
        if self.adapts or picked.batch_weight != self.settings.batch_weight:
            self.change("bn", batch_weight=picked.batch_weight, reason=picked.reason)
        return True

    def _check(self) -> None:
        """Takes adapted weights back if members agree less by them than by statistics alone."""
        own = probing.join(self._own)
        count = len(self._own)
        window = {r: probing.join([look[r] for look in self._looks[-count:]]) for r in WEIGHTS}
        best = max((seen for r, seen in window.items() if r > 0), key=lambda seen: probing.score(seen, window[ANCHOR]))
        better, error = probing.gain(own, window[ANCHOR], best)
        if better < -error:
            self._refused, self._own = True, []
            reason = f"adapted weights agree less than statistics alone ({better:+.3f} ± {error:.3f})"
            self.reset("weights", "optimizer", reason=reason)
            self.change("bn", batch_weight=trying.pick(window, mirrored=False).batch_weight, reason=reason)

    def _notice(self, agreement: Tensor | None) -> None:
        """Compares this batch's agreement with that of the last ones; begins to look anew if it has jumped."""
        if agreement is None:
            return
        if self._settled >= FIRST and len(self._usual) > 1:
            before = torch.cat(self._usual)
            spread = float(before.var()) + 0.25 / len(before)
            error = (spread / len(before) + spread / len(agreement)) ** 0.5
            jump = float(agreement.mean() - before.mean()) / error
            if abs(jump) > SURPRISE:
                self.forget(f"agreement of the members went from {before.mean():.3f} to {agreement.mean():.3f}")
        self._usual = [*self._usual, agreement][-MEMORY:]

    def forget(self, reason: str) -> None:
        """Begins to look anew, as at the start; weights and statistics stay until the looks say otherwise."""
        self._looks, self._own, self._usual = [], [], []
        self._settled, self._refused = 0, False
        self.note({"looks": "anew"}, reason)

    def _at_home(self) -> Ensemble:
        """The ensemble as it came, where the stream computes."""
        if self._home is None:
            members = self.source.members
            if self.device is not None:
                members = [copied(member, self.device) for member in members]
            self._home = Ensemble(members, class_mask=self.source.class_mask)
        return self._home

    def _seen_images(self) -> int:
        return sum(look[ANCHOR].labels.shape[1] for look in self._looks)

    def _window(self) -> dict[float, Seen]:
        return {r: probing.join([look[r] for look in self._looks]) for r in WEIGHTS}

    def _classes(self, batch_weight: float) -> tuple[bool, str]:
        """Whether batches are of mixed classes: each by itself, for a window of many may be of sorted ones."""
        batches = [trying.counted_at(look, batch_weight) for look in self._looks]
        possible = trying.possible_classes(self.source, batches[0].classes)
        parts = [trying.part_of_even(seen, possible) for seen in batches]
        mean = sum(seen.counted_classes for seen in batches) / len(batches)
        return sum(parts) / len(parts) >= MIXED, f"{mean:.1f} of {possible} in a batch"

    def describe_state(self) -> dict[str, Any]:
        kept = {name: getattr(self, f"_{name}") for name in ("settled", "refused", "last_look")}
        confidences = [[look[r].confidence for r in WEIGHTS] for look in self._looks]
        classes = self._looks[0][ANCHOR].classes if self._looks else 0
        own = [seen.confidence for seen in self._own]
        kept |= {"usual": len(self._usual), "confidences": confidences, "own": own, "classes": classes}
        return super().describe_state() | {"watch": kept}

    def pack_state(self) -> dict[str, dict[str, Tensor]]:
        looks = {f"looks/{i}/{j}": look[r].labels for i, look in enumerate(self._looks) for j, r in enumerate(WEIGHTS)}
        own = {f"own/{i}": seen.labels for i, seen in enumerate(self._own)}
        usual = {f"usual/{i}": rows for i, rows in enumerate(self._usual)}
        group = looks | own | usual
        return super().pack_state() | ({"watch": group} if group else {})

    def resume(self, about: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> None:
        with self._turn:
            super().resume(about, tensors)
            kept, group = about["watch"], tensors.get("live-watch", {})
            self._settled, self._refused, self._last_look = kept["settled"], kept["refused"], kept["last_look"]
            classes = kept["classes"]
            self._looks = [
                {r: Seen(group[f"looks/{i}/{j}"], classes, confidence) for j, (r, confidence) in enumerate(pairs)}
                for i, pairs in enumerate([list(zip(WEIGHTS, row, strict=True)) for row in kept["confidences"]])
            ]
            self._own = [Seen(group[f"own/{i}"], classes, confidence) for i, confidence in enumerate(kept["own"])]
            self._usual = [group[f"usual/{i}"] for i in range(kept["usual"])]
