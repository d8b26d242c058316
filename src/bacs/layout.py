"""The order of a model's images and weights in memory. It changes speed and last bits, never the mathematics."""

import torch
from torch import Tensor, nn


def layout_of(model: nn.Module) -> torch.memory_format:
    """Channels-last for convolutional models, about 1.5 times as fast on CPU; else the plain layout.

    Plain as well where channels-last crashes torch 2.13 in a backward pass: group norm whose input needs no gradient,
    as when its scales and shifts alone adapt; and a strided 1x1 convolution of fewer than 16 input channels, where
    oneDNN (two threads or more) corrupts memory when the batch size is odd.
    """
    layers = list(model.modules())
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    if not convolutions or any(p.ndim > 4 for p in model.parameters()):
        return torch.contiguous_format
    if any(isinstance(layer, nn.GroupNorm) for layer in layers):
        return torch.contiguous_format
    unsafe = any(
        layer.kernel_size == (1, 1) and layer.stride != (1, 1) and layer.in_channels < 16 for layer in convolutions
    )
    return torch.contiguous_format if unsafe else torch.channels_last


def arrange_images(images: Tensor, model: nn.Module) -> Tensor:
    """A batch in the model's layout."""
    return images.contiguous(memory_format=layout_of(model)) if images.ndim == 4 else images


def arrange(model: nn.Module, layout: torch.memory_format) -> nn.Module:
    """The model with its weights in this layout, changed in place."""
    return model.to(memory_format=layout)  # pyrefly: ignore[no-matching-overload]
