"""From stored uint8 images to what a model takes."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Preprocessing:
    """(image / 255 - mean) / std by channel, uint8 NHWC to float NCHW. It travels with the checkpoint."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean and std must have one value a channel, got {len(self.mean)} and {len(self.std)}")
        if not all(s > 0 for s in self.std):
            raise ValueError(f"std must be > 0, got {self.std}")

    def __call__(self, images: Tensor) -> Tensor:
        """Float NCHW of a uint8 NHWC batch, in channels-last memory: the layout that convolutions like on CPU."""
        if images.ndim != 4 or images.shape[-1] != len(self.mean):
            raise ValueError(
                f"uint8 images must be [batch, height, width, {len(self.mean)}] (NHWC), got {list(images.shape)}"
            )
        scale = torch.tensor([1 / (255 * s) for s in self.std], device=images.device)
        offset = torch.tensor([m / s for m, s in zip(self.mean, self.std, strict=True)], device=images.device)
        return (images.float() * scale - offset).permute(0, 3, 1, 2)


def to_model(batch: Tensor, preprocessing: Preprocessing | None, like: Tensor) -> Tensor:
    """The batch as the model takes it: uint8 images preprocessed, floats as they are, on the device of `like`."""
    batch = batch.to(like.device)
    if batch.dtype == torch.uint8:
        if preprocessing is None:
            raise ValueError(
                "images are uint8, but the member has no preprocessing: pass floats as the model takes them, "
                "or Member(..., preprocessing=bacs.Preprocessing(mean, std))"
            )
        return preprocessing(batch).to(like.dtype)
    return batch.to(like.dtype) if batch.is_floating_point() else batch
