"""What every loader returns: images that stay uint8 until a batch is made, and what is known about them."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64

from bacs.errors import DataError

Labels = Int64[np.ndarray, "batch"]
ClassMask = Bool[np.ndarray, "classes"]


@runtime_checkable
class Images(Protocol):
    """uint8 images: an array, a memory map, or a lazy sequence that decodes what it is asked for.

    An integer gives one HWC image; a slice or an index array gives an NHWC batch. `shape` is that of the
    whole, as if it were an array.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A data set, or a shift to adapt to: then `labels` are for scoring alone.

    `labels` is None where none are known. `class_mask` marks the classes that may occur when they are fewer
    than the classifier's outputs (ImageNet-R: 200 of 1,000).
    """

    name: str
    images: Images
    labels: Labels | None
    classes: tuple[str, ...]
    class_mask: ClassMask | None = None

    def __len__(self) -> int:
        return len(self.images)


def first_images(images: Images, count: int) -> Images:
    """The first `count` images, still lazy if `images` is."""
    return images[:count] if isinstance(images, np.ndarray) else images.first(count)  # pyrefly: ignore


def take_first(image_set: ImageSet, limit: int | None) -> ImageSet:
    """The first `limit` images of a set with their labels; the whole set for None."""
    if limit is None:
        return image_set
    if limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    labels = None if image_set.labels is None else image_set.labels[:limit]
    return replace(image_set, images=first_images(image_set.images, limit), labels=labels)


def check_labels(labels: np.ndarray, count: int, classes: int, where: object) -> Labels:
    """`labels` as int64, after making sure that there are `count` of them, each in 0..classes-1."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(f"{where}: labels must be a row of integers, found {labels.dtype} {labels.shape}")
    if len(labels) != count:
        raise DataError(f"{where}: {len(labels)} labels for {count} images")
    if count and not (labels.min() >= 0 and labels.max() < classes):
        raise DataError(f"{where}: labels must be 0..{classes - 1}, found {labels.min()}..{labels.max()}")
    return labels.astype(np.int64)
