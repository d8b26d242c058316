"""`bacs.stream`: the online protocol. One pass; each batch is predicted and adapted to as it arrives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bacs import checkpoints, inputs
from bacs.adaptation.forward import forward, probabilities
from bacs.adaptation.step import Adapter
from bacs.ensemble import Ensemble, Member, marginalise, untied
from bacs.errors import CheckpointError
from bacs.methods.catalogue import METHODS, Method, find
from bacs.methods.offline import with_class_mask
from bacs.methods.prepare import adapter_for, working_copy
from bacs.methods.settings import Settings
from bacs.side_by_side import OnBatch, safe, side_by_side


class Live(NamedTuple):
    """A member's own copy that follows the stream; no adapter if the method changes no parameter."""

    member: Member
    adapter: Adapter | None


class Stream:
    """An ensemble that follows its inputs. Made by `bacs.stream`; the ensemble it began with stays as it was."""

    def __init__(
        self,
        ensemble: Ensemble,
        method: str | Method,
        settings: Settings,
        device: torch.device | str | None = None,
        compiled: bool = False,
    ) -> None:
        self.source = ensemble
        self.settings = settings
        self._device, self._compiled = device, compiled
        self.method_name, self._method = find(method)
        self.reset()

    def reset(self) -> None:
        """Back to the start, bit for bit: weights, statistics and the optimiser's memory."""
        self.steps = 0
        self._live = []
        for member in self.source.members:
            own = working_copy(member, self._device)
            mask = self.source.class_mask
            self._live.append(Live(own, adapter_for(own, self._method, self.settings, mask, compiled=self._compiled)))

    def step(self, batch: Any) -> Tensor:
        """Probabilities [batch, classes] of the arriving batch; then every member takes one step on it.

        Predictions come from the forward pass that the step needs anyway. A batch that is no batch of images
        raises before any member has changed; a member that has diverged raises too, and then `reset` is the way on.
        """
        mean = marginalise(self.step_members(batch))
        return mean.to(torch.promote_types(self.source.members[0].like.dtype, torch.float32))

    def step_members(self, batch: Any) -> list[Tensor]:
        """As `step`, with the float64 probabilities of each member apart."""
        return self.step_each([batch] * len(self._live))

    def step_each(self, batches: Sequence[Any]) -> list[Tensor]:
        """As `step_members`, with a batch for each member: the same images, at each one's own size."""
        images = [inputs.checked(torch.as_tensor(batch)) for batch in batches]
        if self.steps == 0:
            self.source.check_each([own[:2] for own in images])

        def rows_of(pair: tuple[Live, Tensor], on_batch: OnBatch) -> Tensor:
            return self._step_member(pair[0], pair[0].member.prepare(pair[1]))

        together = safe(images[0], [live.member.model for live in self._live])
        rows = list(side_by_side(rows_of, list(zip(self._live, images, strict=True)), allowed=together))
        self.steps += 1
        return rows

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as they stand; they go on changing with the stream."""
        return tuple(live.member for live in self._live)

    def _step_member(self, live: Live, batch: Tensor) -> Tensor:
        mask = self.source.class_mask
        if live.adapter is not None:
            return probabilities(live.adapter.step(batch), mask).cpu()
        with torch.no_grad():
            return probabilities(forward(live.member.model, batch, mask), mask).cpu()

    def save(self, path: str | Path) -> None:
        """Writes the stream as it stands; `bacs.load` brings it back and it goes on as if never stopped."""
        if METHODS.get(self.method_name) != self._method:
            raise ValueError("a stream with a method outside bacs.METHODS cannot be saved: add the method there first")
        manifest, tensors = self.source.pack()
        for index, (member, adapter) in enumerate(self._live):
            group = {f"model/{name}": tensor for name, tensor in untied(member.model).items()}
            for name, p in ({} if adapter is None else adapter.params).items():
                memory = adapter.optimizer.state[p] if adapter is not None else {}
                group |= {f"optimizer/{name}/{key}": t for key, t in memory.items() if isinstance(t, Tensor)}
            tensors[f"live-{index}"] = group
        about = {"method": self.method_name, "steps": self.steps, "settings": self.settings.as_json()}
        checkpoints.write(path, manifest | {"kind": "stream", "stream": about}, tensors)

    @torch.no_grad()
    def resume(self, steps: int, tensors: list[dict[str, Tensor]]) -> None:
        """Takes over what `save` wrote of each member."""
        for (member, adapter), saved in zip(self._live, tensors, strict=True):
            own = {f"model/{name}": tensor for name, tensor in untied(member.model).items()}
            if not own.keys() <= saved.keys():
                raise CheckpointError(f"the stream lacks {next(name for name in own if name not in saved)!r}")
            for name, tensor in own.items():
                tensor.copy_(saved[name])
            for key, tensor in saved.items():
                if key.startswith("optimizer/") and adapter is not None:
                    name, field = key.removeprefix("optimizer/").rsplit("/", 1)
                    adapter.optimizer.state[adapter.params[name]][field] = tensor.to(
                        tensor.device if field == "step" else adapter.params[name].device
                    )
        self.steps = steps


def stream(
    ensemble: Ensemble,
    method: str | Method = "bacs",
    *,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    momentum: float = 0.9,
    optimizer: str = "sgd",
    posterior_step: str = "proximal",
    min_variance: float = 1e-12,
    class_mask: Tensor | None = None,
    device: torch.device | str | None = None,
    compile: bool = False,
) -> Stream:
    """A stream that predicts and adapts batch by batch; arguments as in `bacs.adapt`."""
    settings = Settings(learning_rate, posterior_weight, momentum, optimizer, posterior_step, min_variance)
    return Stream(with_class_mask(ensemble, class_mask), method, settings, device, compile)
