"""One pass of a batch through a model, with errors that name what does not fit."""

from typing import Any

import torch
from torch import Tensor, nn

from bacs.errors import DivergenceError


def logits_of(output: Any) -> Tensor:
    """The [batch, classes] logits of a model's output: a tensor, or an object with `.logits`."""
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        shape = list(logits.shape) if isinstance(logits, Tensor) else type(output).__name__
        raise TypeError(f"the model must return [batch, classes] logits or an object with .logits, got {shape}")
    return logits


def forward(model: nn.Module, inputs: Tensor, class_mask: Tensor | None = None) -> Tensor:
    """Finite logits [batch, classes], restricted to the classes of the mask.

    A masked class takes no part in softmax or entropy: its column is left out, not set to -inf, so that
    gradients stay finite.
    """
    try:
        logits = logits_of(model(inputs))
    except (RuntimeError, ValueError, IndexError) as error:
        raise _explained(error, model, inputs) from error
    if not torch.isfinite(logits).all():
        raise DivergenceError(
            f"{type(model).__name__} gave NaN or infinite logits for finite inputs; its weights have diverged "
            "(a smaller learning_rate helps)"
        )
    return logits if class_mask is None else logits[:, class_mask.to(logits.device)]


def _explained(error: Exception, model: nn.Module, inputs: Tensor) -> Exception:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "more than 1 value per channel" in reason:
        return ValueError(
            f"batch statistics need more than one value a channel, got inputs of shape {list(inputs.shape)}; "
            "use a larger batch, or method='vanilla'"
        )
    if "out of memory" in reason.lower() or "not enough memory" in reason.lower():
        return error
    return ValueError(f"images of shape {list(inputs.shape)} do not fit {type(model).__name__}: {reason}")


def probabilities(logits: Tensor, class_mask: Tensor | None = None) -> Tensor:
    """softmax of the logits in float64, at full width: a masked class has probability 0.

    float64, so that the score of a confident mistake is a number and not an underflow.
    """
    kept = logits.detach().double().softmax(dim=-1)
    if class_mask is None:
        return kept
    full = kept.new_zeros(len(kept), len(class_mask))
    full[:, class_mask.to(kept.device)] = kept
    return full
