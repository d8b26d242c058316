"""Unlabelled inputs in any form a user has them, as checked batches.

Accepted: a tensor or NumPy array (floats as the model takes them, or uint8 NHWC), anything with `len` and integer
indexing (a Dataset; of a pair only the first part, the image, is read), or a DataLoader. Labels never leave here.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler, Subset

Images = Any  # Tensor | np.ndarray | Dataset | DataLoader | PerMember: there is no common type to name


class PerMember(tuple[Any, ...]):
    """Images for each member: the same ones in the same order, at each one's own size."""


def views_of(images: Images, members: int) -> list[Images]:
    """The images of each member."""
    if not isinstance(images, PerMember):
        return [images] * members
    if len(images) != members:
        raise ValueError(f"images must be given for each member, got {len(images)} for {members} members")
    return list(images)


class Reader:
    """The same batches of one or several views of the images, in the same order: random if there is a seed.

    A view that several members share is read once. Every pass goes on with the same random numbers.
    """

    def __init__(self, views: Sequence[Images], batch_size: int, *, seed: int | None) -> None:
        self._places = [id(view) for view in views]
        self._distinct = dict(zip(self._places, views, strict=True))
        self._batch_size = batch_size
        self._generators = [None if seed is None else torch.Generator().manual_seed(seed) for _ in self._distinct]

    def batches(self, share: int | float = 1.0) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Positions of the images, and a batch for each view."""
        readers = [
            batches(view, self._batch_size, generator=generator, share=share)
            for view, generator in zip(self._distinct.values(), self._generators, strict=True)
        ]
        for parts in zip(*readers, strict=True):
            found = dict(zip(self._distinct, parts, strict=True))
            yield parts[0][0], [found[place][1] for place in self._places]


def batches(
    images: Images, batch_size: int, *, generator: torch.Generator | None = None, share: int | float = 1.0
) -> Iterator[tuple[Tensor, Tensor]]:
    """(positions, batch) pairs that cover all images once, or a `share` of them, the last one smaller if need be.

    With a generator the order is random. A DataLoader keeps its own order and batch size; a share is whole batches.
    """
    if isinstance(images, DataLoader):
        yield from _loader_batches(images, share)
        return
    items, whole = _as_sequence(images)
    count = min(whole, max(2, round(share * whole)))  # one image has no statistics
    order = order_of(whole, generator)
    for positions in order[:count].split(batch_sizes(count, batch_size)):
        yield positions, check_values(_take(items, positions, in_order=generator is None))


def order_of(count: int, generator: torch.Generator | None) -> Tensor:
    """The order in which so many images are read: as they come, or a random one."""
    return torch.arange(count) if generator is None else torch.randperm(count, generator=generator)


def batch_sizes(count: int, batch_size: int) -> list[int]:
    """Sizes of the batches of so many images, the last one smaller if need be."""
    sizes = []
    while count:
        sizes.append(next_batch_size(count, batch_size))
        count -= sizes[-1]
    return sizes


def next_batch_size(left: int, batch_size: int) -> int:
    """Images of the next batch where so many are left.

    One image left over takes a second from the batch before: alone it has no statistics, and where there are no
    pixels to average it is an error.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    return batch_size - 1 if left == batch_size + 1 and batch_size > 2 else min(left, batch_size)


def check(images: Images, *, batch_size: int) -> None:
    """Raises if `images` is not something that `batches` can read; looks at the first batch of a Dataset."""
    check_batch_size(batch_size)
    if isinstance(images, (Tensor, np.ndarray)):
        items, _ = _as_sequence(images)
        assert isinstance(items, Tensor)
        for part in items.split(4096):  # in parts: a check must not copy a large array
            check_values(part)
    else:
        first_batch(images)


def check_batch_size(batch_size: Any, name: str = "batch_size") -> None:
    if not _is_whole(batch_size) or batch_size < 1:
        rule = "at least 1" if _is_whole(batch_size) else "a whole number"
        raise ValueError(f"{name} must be {rule}, got {batch_size!r}")


def check_seed(seed: Any) -> None:
    """Raises for what is no seed. None would be no order at all; what NumPy takes, torch and its views take too."""
    if not _is_whole(seed) or not 0 <= seed < 2**32:
        raise ValueError(f"seed must be a whole number from 0 to {2**32 - 1}, got {seed!r}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def first_batch(images: Images) -> Tensor:
    """One small batch, to try a model on before any work is done."""
    if isinstance(images, DataLoader):
        for _, batch in _loader_batches(images):
            return batch[:2]
        raise ValueError("images must hold at least one image, got an empty DataLoader")
    items, count = _as_sequence(images)
    return check_values(_take(items, torch.arange(min(count, 2)), in_order=True))


def sample(images: Images, count: int, *, seed: int) -> Images:
    """A seeded draw of so many images, or all of them if there are no more; a DataLoader is read through for it."""
    check_seed(seed)
    if isinstance(images, PerMember):
        drawn = {id(view): sample(view, count, seed=seed) for view in images}  # one draw of a view that members share
        return PerMember(drawn[id(view)] for view in images)
    if isinstance(images, DataLoader):
        return _reservoir(images, count, seed)
    items, whole = _as_sequence(images)
    if whole <= count:
        return images
    chosen = torch.randperm(whole, generator=torch.Generator().manual_seed(seed))[:count].sort().values
    return items[chosen] if isinstance(items, Tensor) else Subset(cast(Dataset[Any], items), chosen.tolist())


def _reservoir(loader: DataLoader, count: int, seed: int) -> Tensor:
    """A draw from batches that pass once (Vitter's algorithm R): image n takes a random place with chance count / n."""
    generator = torch.Generator().manual_seed(seed)
    kept: list[Tensor] = []
    for positions, batch in _loader_batches(loader):
        for position, image in zip(positions.tolist(), batch, strict=True):
            if len(kept) < count:
                kept.append(image.clone())
                continue
            place = int(torch.randint(position + 1, (), generator=generator))
            if place < count:
                kept[place] = image.clone()
    return torch.stack(kept)


def count(images: Images) -> int:
    """How many images there are; a DataLoader is asked for its data set, or read through."""
    if isinstance(images, PerMember):
        return count(images[0])
    if isinstance(images, DataLoader):
        return sum(len(batch) for _, batch in _loader_batches(images))
    return _as_sequence(images)[1]


def check_order(images: Images) -> None:
    """Raises for a shuffling DataLoader, whose predictions nobody could match to images."""
    if isinstance(images, DataLoader) and isinstance(images.sampler, RandomSampler):
        raise ValueError("predict needs a DataLoader with shuffle=False: its predictions could not be told apart")


def as_batch(given: Any) -> Tensor:
    """One batch of images as a tensor."""
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        hint = "; of a pair (images, labels) give the first part" if isinstance(given, (tuple, list)) else ""
        raise TypeError(f"a batch must be a tensor or an array of images, got {type(given).__name__}{hint}") from None


def check_values(batch: Tensor) -> Tensor:
    """The batch, or a ValueError that says why it cannot be images."""
    if batch.ndim < 2 or batch.shape[0] == 0:
        hint = "; these look like labels" if batch.ndim == 1 and not batch.is_floating_point() else ""
        raise ValueError(f"images must be [batch, ...] with at least one image, got shape {list(batch.shape)}{hint}")
    if batch.is_complex() or batch.dtype == torch.bool:
        raise ValueError(f"images must be floats, uint8 pixels or integer tokens, got {batch.dtype}")
    if batch.ndim == 4 and not batch.is_floating_point() and batch.dtype != torch.uint8:
        raise ValueError(f"pixels must be uint8, 0..255, got {batch.dtype}: turn them into uint8 or floats first")
    if batch.is_floating_point() and not torch.isfinite(batch).all():
        bad = (~torch.isfinite(batch.flatten(1))).any(dim=1).nonzero()[0].item()
        raise ValueError(f"images must be finite, got NaN or infinity in image {bad} of the batch")
    return batch


def _as_sequence(images: Images) -> tuple[Tensor | Sequence[Any], int]:
    if isinstance(images, np.ndarray):
        if not (images.dtype == np.uint8 or images.dtype.kind in "fiu"):
            raise ValueError(f"images must be floats, uint8 pixels or integer tokens, got {images.dtype}")
        images = torch.from_numpy(images if images.flags.writeable else _writable_view(images))
    if isinstance(images, Tensor):
        if images.ndim == 0:
            raise ValueError("images must be [batch, ...], got a single number")
        if images.shape[0] == 0:
            raise ValueError(f"images must hold at least one image, got shape {list(images.shape)}")
        return images, images.shape[0]
    if hasattr(images, "__len__") and hasattr(images, "__getitem__") and not isinstance(images, (str, bytes, dict)):
        if len(images) == 0:
            raise ValueError(f"images must hold at least one image, got an empty {type(images).__name__}")
        return images, len(images)
    hint = "; bacs.data.pictures reads files and folders" if isinstance(images, (str, Path)) else ""
    raise TypeError(
        "images must be a tensor, a NumPy array, a Dataset with a length or a DataLoader, got "
        f"{type(images).__name__}{hint}"
    )


def _writable_view(array: np.ndarray) -> np.ndarray:
    """The same memory without the read-only flag: torch warns about it, and nothing here writes to images."""
    interface = dict(array.__array_interface__, data=(array.__array_interface__["data"][0], False))
    holder = type("Held", (), {"__array_interface__": interface, "keep": array})()
    return np.asarray(holder)


def _take(items: Tensor | Sequence[Any], positions: Tensor, *, in_order: bool) -> Tensor:
    if isinstance(items, Tensor):
        if in_order:  # a slice is a view: no copy of the images
            return items[int(positions[0]) : int(positions[-1]) + 1]
        return items[positions]
    # torch's optional protocol for many items at once, which lets a folder decode its images in parallel.
    many = getattr(items, "__getitems__", None)
    chosen = [items[i] for i in positions.tolist()] if many is None else many(positions.tolist())
    return torch.stack([_image_of(item) for item in chosen])


def _image_of(item: Any) -> Tensor:
    """The image of a Dataset's item, which may be a pair with a label."""
    value = item[0] if isinstance(item, (tuple, list)) else item
    if isinstance(value, (Tensor, np.ndarray)):
        return torch.as_tensor(value)
    name = type(value).__name__
    hint = "; bacs.data.pictures reads files" if isinstance(value, (str, Path)) or "Image" in name else ""
    raise TypeError(f"images must be tensors or arrays, or pairs that begin with one, got {name}{hint}")


def _loader_batches(loader: DataLoader, share: float = 1.0) -> Iterator[tuple[Tensor, Tensor]]:
    seen = 0
    for item in loader if share == 1 else islice(loader, max(1, round(share * _batch_count(loader)))):
        batch = check_values(_image_of(item))
        yield torch.arange(seen, seen + len(batch)), batch
        seen += len(batch)
    if seen == 0:
        raise ValueError("images must hold at least one image, got an empty DataLoader")


def _batch_count(loader: DataLoader) -> int:
    try:
        return len(loader)
    except TypeError as error:  # of an iterable
        raise ValueError("epochs must be a whole number for a DataLoader that has no length") from error
