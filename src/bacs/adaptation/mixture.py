"""Batch norm by a mixture of reference and batch statistics, at nearly the price of the plain one.

    m = (1 - r) reference mean + r batch mean,   v likewise,   y = gamma (x - m) / sqrt(v + eps) + beta

Gradients flow through the batch's part of m and v. With them held constant, large steps on all weights diverge.

There is one reduction and one fused pass each way, as in plain batch norm. With w = 1 / sqrt(v + eps), n values per
channel, and means over these written <.>,

    dx = gamma w ( g - r <g> - r w^2 (x - batch mean) <g (x - m)> ).

torch's own backward pass computes gamma' w' (g - <g> - w'^2 (x - m) <g (x - m)>); with w' = sqrt(r) w and
gamma' = gamma / sqrt(r) that is dx up to a constant per channel, which is added in place.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class _MixedNorm(torch.autograd.Function):
    """y and the statistics m and v that it was made with, which carry no gradient of their own."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mean: Tensor,
        variance: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        r: float,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Copies of the reference tell the kernel its type: sums over bfloat16 activations are float32.
        batch_mean, batch_variance = torch.batch_norm_update_stats(x, mean.clone(), variance.clone(), 0.0)
        m, v = torch.lerp(mean, batch_mean, r), torch.lerp(variance, batch_variance, r)
        y = torch.native_batch_norm(x, weight, bias, m, v, False, 0.0, eps)[0]
        ctx.save_for_backward(x, weight, batch_mean, m, (v + eps).rsqrt())
        ctx.r, ctx.eps = r, eps
        ctx.mark_non_differentiable(m, v)
        return y, m, v

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, batch_mean, m, w = ctx.saved_tensors
        root = ctx.r**0.5
        gamma = torch.ones_like(m) if weight is None else weight
        dx, scaled, dbeta = torch.ops.aten.native_batch_norm_backward(
            gradients[0], x, gamma / root, None, None, m, w * root, True, ctx.eps, [True, True, True]
        )
        dgamma = scaled / root  # w sum g (x - m)
        constant = gamma * w * ((1 - ctx.r) * dbeta - ctx.r * w * (m - batch_mean) * dgamma) * (x.shape[1] / x.numel())
        dx.add_(constant.to(dx.dtype).view(1, -1, *[1] * (x.ndim - 2)))
        wanted = ctx.needs_input_grad
        return dx, None, None, dgamma if wanted[3] else None, dbeta if wanted[4] else None, None, None


class Mixing:
    """The forward pass of one batch-norm layer with mixed statistics. What the last one used is in `used`.

    The layer's own forward runs, so that whatever a subclass adds to it stays; only its call of torch's batch norm
    is answered here.
    """

    def __init__(self, layer: nn.Module, batch_weight: float) -> None:
        self.layer, self.batch_weight = layer, batch_weight
        self.used: tuple[Tensor, Tensor] | None = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        with _Answering(self.normalise):
            return type(self.layer).forward(self.layer, *inputs)

    def normalise(
        self,
        input: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """What `torch.nn.functional.batch_norm` takes; normalised by the mixture."""
        y, *used = _MixedNorm.apply(input, running_mean, running_var, weight, bias, self.batch_weight, eps)
        self.used = used[0], used[1]
        return y


class _Answering(TorchFunctionMode):
    """Answers calls of torch's batch norm in this thread; every other function runs as it is."""

    def __init__(self, batch_norm: Callable[..., Tensor]) -> None:
        super().__init__()
        self.batch_norm = batch_norm

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        called = self.batch_norm if func is functional.batch_norm else func
        return called(*args, **(kwargs or {}))
