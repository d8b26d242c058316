"""A moving member between steps: other choices, a way back, and what is stored of it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bacs import checkpoints
from bacs.adaptation.loop import Mover
from bacs.ensemble import Member, untied
from bacs.errors import CheckpointError
from bacs.methods.catalogue import Method
from bacs.methods.settings import Settings
from bacs.parameters import batch_norm_layers

MEMORY: dict[type, tuple[str, ...]] = {
    torch.optim.SGD: ("momentum_buffer",),
    torch.optim.Adam: ("step", "exp_avg", "exp_avg_sq"),
}
"""What each optimiser remembers of a parameter."""

ADJUSTABLE = ("learning_rate", "posterior_weight", "temperature", "reset_every")
"""What can change without building anything anew."""


def adjust(movers: Sequence[Mover], method: Method, old_method: Method, new: Settings, old: Settings) -> bool:
    """Changes rate and posterior weight where they are; False if more than that is to change."""
    same = replace(new, **{name: getattr(old, name) for name in ADJUSTABLE})
    if method != old_method or same != old:
        return False
    for mover in movers:
        if mover.descent is not None:
            mover.descent.learning_rate = new.learning_rate
            mover.descent.posterior_weight = new.posterior_weight
    return True


def unfreeze(model: nn.Module, source: nn.Module) -> None:
    """Lets a method choose its parameters anew: each may change that its owner did not freeze."""
    for own, theirs in zip(model.parameters(), source.parameters(), strict=True):
        own.requires_grad_(theirs.requires_grad)


def take_over(mover: Mover, before: Mover) -> None:
    """Goes on where another mover of the same model was: its steps, and the optimiser's memory if it means the same."""
    mover.steps = before.steps
    new, old = mover.descent, before.descent
    if new is None or old is None or type(new.optimizer) is not type(old.optimizer):
        return
    for name, p in new.params.items():
        if name in old.params and old.optimizer.state.get(p):
            new.optimizer.state[p] = old.optimizer.state[p]


@torch.no_grad()
def go_back(mover: Mover, source: Member, parts: Sequence[str], share: float = 1.0) -> None:
    """Returns weights (a share of their way), statistics or the optimiser's memory to what they were at the start."""
    if "weights" in parts:
        for own, theirs in zip(mover.model.parameters(), source.model.parameters(), strict=True):
            own.copy_(theirs) if share == 1 else own.lerp_(theirs.to(own), share)
    if "statistics" in parts:
        pairs = zip(batch_norm_layers(mover.model), batch_norm_layers(source.model), strict=True)
        for own_layer, layer in pairs:
            for own, theirs in zip(own_layer.buffers(), layer.buffers(), strict=True):
                own.copy_(theirs)
    if "optimizer" in parts and mover.descent is not None:
        mover.descent.optimizer.state.clear()


def pack(mover: Mover) -> dict[str, Tensor]:
    """Weights, statistics and the optimiser's memory."""
    group = {f"model/{name}": tensor for name, tensor in untied(mover.model).items()}
    if mover.descent is not None:
        for name, p in mover.descent.params.items():
            memory = mover.descent.optimizer.state[p]
            group |= {f"optimizer/{name}/{key}": t for key, t in memory.items() if isinstance(t, Tensor)}
    return group


@torch.no_grad()
def unpack(mover: Mover, saved: dict[str, Tensor]) -> None:
    """Takes over what `pack` gave, of the optimiser's memory what belongs to parameters that move now."""
    for name, tensor in untied(mover.model).items():
        tensor.copy_(saved[f"model/{name}"])
    if mover.descent is None:
        return
    state = mover.descent.optimizer.state
    for name, parameter in mover.descent.params.items():
        for field in MEMORY[type(mover.descent.optimizer)]:
            if (tensor := saved.get(f"optimizer/{name}/{field}")) is not None:
                state[parameter][field] = tensor.to(tensor.device if field == "step" else parameter.device)


def check_weights(mover: Mover, saved: dict[str, Tensor]) -> None:
    """Raises unless a file's tensors are what `pack` gives of this model under some method, and nothing else."""
    own = {f"model/{name}": tensor for name, tensor in untied(mover.model).items()}
    for optimizer in MEMORY.values():
        for name, parameter in mover.model.named_parameters():
            keys = {
                f"optimizer/{name}/{field}": torch.zeros(()) if field == "step" else parameter for field in optimizer
            }
            if any(key in saved for key in keys):
                own |= keys
    for key in own.keys() | saved.keys():
        if key not in own or key not in saved:
            raise CheckpointError(f"the stream {'lacks' if key in own else 'has an unknown'} {key!r}")
        checkpoints.check_like(key, saved[key], own[key])
