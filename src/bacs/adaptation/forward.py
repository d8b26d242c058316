"""One pass of a batch through a model, with errors that name what does not fit."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from bacs.errors import DivergenceError


def logits_of(output: Any) -> Tensor:
    """The [batch, classes] logits of a model's output: a tensor, or the `logits` of an object or a mapping."""
    logits = output.get("logits", output) if isinstance(output, Mapping) else getattr(output, "logits", output)
    if isinstance(logits, Tensor) and logits.ndim == 2:
        return logits
    if isinstance(logits, Tensor):
        raise TypeError(f"the model must return [batch, classes] logits, got shape {list(logits.shape)}")
    several = isinstance(output, (Mapping, tuple, list)) and len(output) > 0
    key = repr(next(iter(output))) if isinstance(output, Mapping) and several else "0"
    hint = f"\npick them with model.register_forward_hook(lambda module, inputs, output: output[{key}])"
    raise TypeError(
        f"the model must return [batch, classes] logits, alone or as `logits` of an object or dict, "
        f"got a {type(output).__name__}{hint if several else ''}"
    )


def forward(model: nn.Module, inputs: Tensor, class_mask: Tensor | None = None, *, compiled: bool = False) -> Tensor:
    """Finite logits [batch, classes], restricted to the classes of the mask.

    A masked class takes no part in softmax or entropy: its column is left out, not set to -inf, so that
    gradients stay finite.
    """
    try:
        logits = logits_of(_compiled_call()(model, inputs) if compiled else model(inputs))
    except (RuntimeError, ValueError, IndexError) as error:
        raise _explain(error, model, inputs) from error
    if not torch.isfinite(logits).all():
        raise DivergenceError(
            f"{type(model).__name__} gave NaN or infinite logits for finite inputs; its weights have diverged "
            "(a smaller learning_rate helps)"
        )
    return restrict(logits, class_mask)


def restrict(logits: Tensor, class_mask: Tensor | None) -> Tensor:
    """The columns of the classes of the mask."""
    return logits if class_mask is None else logits[:, class_mask.to(logits.device)]


@cache
def _compiled_call() -> Callable[[nn.Module, Tensor], Any]:
    """`model(inputs)` compiled. One function for all models: weights are its inputs, so equal members compile once."""
    return torch.compile(lambda model, inputs: model(inputs))


def try_out(model: nn.Module, inputs: Tensor) -> Tensor:
    """The logits of a first batch, or a ValueError for what would make every later result wrong without a sign."""
    own = inputs.clone()
    logits = forward(model, own)
    name = type(model).__name__
    if own._version:
        raise ValueError(f"{name} changes its inputs in place, which would spoil the images: clone them in its forward")
    if logits.shape[1] < 2:
        raise ValueError(
            f"the model must return a logit for each of two or more classes, got one from {name}; of a binary z, "
            "return torch.cat([torch.zeros_like(z), z], dim=1)"
        )
    if (logits >= 0).all() and torch.allclose(logits.sum(dim=1), logits.new_ones(()), atol=1e-3):
        raise ValueError(
            f"the model must return logits, but those of {name} are probabilities (>= 0, with sum 1): "
            "take its last softmax away, or return their logarithm"
        )
    return logits


def _explain(error: Exception, model: nn.Module, inputs: Tensor) -> Exception:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        cause = " ".join(str(error).split("\n\n")[0].split())
        return RuntimeError(f"torch.compile failed on {type(model).__name__}: {cause} (compile=False does without)")
    if "more than 1 value per channel" in reason:
        return ValueError(
            f"batch statistics need more than one value per channel, got inputs of shape {list(inputs.shape)}; "
            "use a larger batch, a batch_weight below 1, or method='vanilla'"
        )
    if "out of memory" in reason.lower() or "not enough memory" in reason.lower():
        return error
    if channels := re.search(r"to have (\d+) channels, but got (\d+) channels", reason):
        reason = f"it takes {channels[1]} channels, got {channels[2]} channels in [batch, channels, height, width]"
        if inputs.ndim == 3:
            reason = "it takes [batch, channels, height, width]; a single image is a batch as images[None]"
    hint = "; half-precision weights are float32 while they adapt" if "BFloat16" in reason or "Half" in reason else ""
    return ValueError(f"images of shape {list(inputs.shape)} do not fit {type(model).__name__}: {reason}{hint}")


def probabilities(logits: Tensor, class_mask: Tensor | None = None, *, temperature: float = 1.0) -> Tensor:
    """softmax(logits / T) in float64, at full width: a masked class has probability 0.

    float64, so that the score of a confident mistake is a number and not an underflow.
    """
    kept = (logits.detach().double() / temperature).softmax(dim=-1)
    if class_mask is None:
        return kept
    full = kept.new_zeros(len(kept), len(class_mask))
    full[:, class_mask.to(kept.device)] = kept
    return full
