"""From pictures and stored uint8 images to what a model takes."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from bacs.errors import unknown_name

INTERPOLATIONS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
CHANNEL_ORDERS = ("rgb", "bgr")


@dataclass(frozen=True)
class Preprocessing:
    """(image / 255 - mean) / std by channel, uint8 NHWC to float NCHW. It travels with the checkpoint.

    `mean` and `std` are on the scale 0..1 and in the order of the model's channels: a model that takes (x - 127) / 128
    has mean 127/255 and std 128/255. With a `size` (height, width), images of any other size are brought to it:
    the central part of the model's shape, `crop` times as large as it can be, is resized; `crop=None` squashes the
    whole picture. An image that has the size already is left alone. Without a size, images are taken as they are.

    torchvision's and timm's usual evaluation is `size=(224, 224), crop=224 / 256`; images are RGB, and
    `channel_order="bgr"` turns them round for models that learnt from OpenCV's arrays.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: tuple[int, int] | None = None
    crop: float | None = 1.0
    interpolation: str = "bilinear"
    channel_order: str = "rgb"

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            given = getattr(self, name)
            try:
                object.__setattr__(self, name, tuple(float(value) for value in given))
            except (TypeError, ValueError):
                raise TypeError(
                    f"{name} must be numbers, one per channel, such as (0.5, 0.5, 0.5), got {given!r}"
                ) from None
        if len(self.mean) != len(self.std) or not self.mean:
            raise ValueError(f"mean and std must have one value per channel, got {len(self.mean)} and {len(self.std)}")
        if not all(map(math.isfinite, self.mean)):
            raise ValueError(f"mean must be finite, got {self.mean}")
        if not all(s > 0 for s in self.std):
            raise ValueError(f"std must be > 0, got {self.std}")
        for name in ("mean", "std"):
            largest = max(getattr(self, name))
            if largest > 1:
                raise ValueError(f"{name} must be on the scale 0..1, got {largest:g}: of pixels 0..255, divide by 255")
        if self.size is not None:
            object.__setattr__(self, "size", _check_size(self.size))
        if self.crop is not None and not 0 < self.crop <= 1:
            raise ValueError(f"crop must be above 0 and at most 1, or None to squash the picture, got {self.crop}")
        if self.interpolation not in INTERPOLATIONS:
            raise unknown_name("interpolation", self.interpolation, list(INTERPOLATIONS))
        if self.channel_order not in CHANNEL_ORDERS:
            raise unknown_name("channel_order", self.channel_order, CHANNEL_ORDERS)
        if self.channel_order == "bgr" and len(self.mean) != 3:
            raise ValueError(f"channel_order 'bgr' needs 3 channels, got {len(self.mean)}")

    def __call__(self, images: Tensor) -> Tensor:
        """Float NCHW of a uint8 NHWC batch, in channels-last memory: the layout that convolutions like on CPU.

        Grey images become colours of three equal channels, as grey pictures do.
        """
        if images.ndim == 4 and images.shape[-1] == 1 and len(self.mean) == 3:
            images = images.expand(-1, -1, -1, 3)
        if images.ndim != 4 or images.shape[-1] != len(self.mean):
            raise ValueError(
                f"uint8 images must be [batch, height, width, {len(self.mean)}] (NHWC), got {list(images.shape)}"
            )
        images = self.resize_images(images)
        if self.channel_order == "bgr":
            images = images.flip(-1)
        scale = torch.tensor([1 / (255 * s) for s in self.std], device=images.device)
        offset = torch.tensor([m / s for m, s in zip(self.mean, self.std, strict=True)], device=images.device)
        return (images.float() * scale - offset).permute(0, 3, 1, 2)

    def resize_images(self, images: Tensor) -> Tensor:
        """The uint8 NHWC batch at the model's size, just as its pictures would be if they came from files."""
        if self.size is None or images.ndim != 4 or tuple(images.shape[1:3]) == self.size:
            return images
        if images.shape[-1] not in (1, 3):
            raise ValueError(f"only images of 1 or 3 channels can be resized to {self.size}, got {images.shape[-1]}")
        pixels = images.cpu().numpy()
        if pixels.shape[-1] == 1:  # Pillow wants grey without a channel axis
            pixels = pixels[..., 0]
        fitted = np.stack([np.asarray(self.fit_picture(Image.fromarray(image))) for image in pixels])
        return torch.from_numpy(fitted.reshape(len(images), *self.size, -1)).to(images.device)

    def fit_picture(self, picture: Image.Image) -> Image.Image:
        """The picture at the model's size."""
        if self.size is None or (picture.height, picture.width) == self.size:
            return picture
        return crop_and_resize(picture, self.size, self.crop, self.interpolation)

    def check_floats(self, images: Tensor) -> None:
        """Raises for floats that are pixels: >= 0 and far beyond the brightest that this makes of any."""
        brightest = max((1 - m) / s for m, s in zip(self.mean, self.std, strict=True))
        low, high = float(images.min()), float(images.max())
        if low >= 0 and high > 8 * max(brightest, 1.0):
            raise ValueError(
                f"floats must be as the model takes them, (x / 255 - mean) / std, got {low:g}..{high:g}: "
                "uint8 [batch, height, width, channels] is brought to that"
            )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Preprocessing":
        """What `as_json` wrote. A key of a later version is an error: without it the inputs would be wrong."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise unknown_name("preprocessing", name, known)
        return cls(**values)


def geometry(preprocessing: Preprocessing | None) -> tuple[Any, ...]:
    """What decides about a picture's pixels; mean, deviation and channel order come later."""
    if preprocessing is None:
        return ()
    return preprocessing.size, preprocessing.crop, preprocessing.interpolation, len(preprocessing.mean)


def crop_and_resize(
    picture: Image.Image, size: tuple[int, int], crop: float | None, interpolation: str = "bilinear"
) -> Image.Image:
    """The central part of the picture, in the shape of `size` (height, width), resized to it.

    The part is `crop` times the largest that fits, which for crop = 224/256 and a square is the usual "shorter side
    to 256, central 224", without the first of its two roundings. None takes the whole picture, squashed.
    """
    height, width = size
    if crop is None:
        box = None
    else:
        unit = crop * min(picture.width / width, picture.height / height)
        # Never outside of the picture by a rounding error: Pillow refuses that.
        right = min(picture.width, (picture.width + unit * width) / 2)
        bottom = min(picture.height, (picture.height + unit * height) / 2)
        box = (picture.width - right, picture.height - bottom, right, bottom)
    return picture.resize((width, height), INTERPOLATIONS[interpolation], box=box)


def to_model(batch: Tensor, preprocessing: Preprocessing | None, like: Tensor) -> Tensor:
    """The batch as the model takes it: uint8 images preprocessed, floats as they are, on the device of `like`."""
    if batch.dtype == torch.uint8:
        if preprocessing is None:
            raise ValueError(
                "images are uint8, but the member has no preprocessing: pass floats as the model takes them, "
                "or Member(..., preprocessing=bacs.Preprocessing(mean, std))"
            )
        # Resized where Pillow works, before the batch goes to another device.
        return preprocessing(send(preprocessing.resize_images(batch), like.device)).to(like.dtype)
    batch = send(batch, like.device)
    return batch.to(like.dtype) if batch.is_floating_point() else batch


def send(batch: Tensor, device: torch.device) -> Tensor:
    """The batch on the device. From page-locked memory a GPU fetches it while it still works on the one before."""
    if device.type == "cuda" and batch.device.type == "cpu":
        return batch.pin_memory().to(device, non_blocking=True)
    return batch.to(device)


def _check_size(size: Any) -> tuple[int, int]:
    values = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if len(values) != 2 or not all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in values):
        raise ValueError(f"size must be (height, width) in pixels, got {size!r}")
    return values
