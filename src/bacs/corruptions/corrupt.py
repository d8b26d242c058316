"""The catalogue of corruptions and the one function that applies them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.random import SFC64, Generator, SeedSequence

from bacs.corruptions import blur, defocus, digital, elastic, noise, spatter, weather
from bacs.corruptions.constants import CONSTANTS
from bacs.errors import unknown_name

_TEST: dict[str, Callable] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": defocus.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "contrast": digital.contrast,
    "elastic_transform": elastic.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}
_VALIDATION: dict[str, Callable] = {
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter.spatter,
    "saturate": digital.saturate,
}

TEST = tuple(_TEST)
"""The 15 corruptions that methods are compared on, in the published order."""

VALIDATION = tuple(_VALIDATION)
"""The 4 corruptions that hyperparameters are chosen on."""

_CORRUPTIONS = _TEST | _VALIDATION
# A number is part of the seed of every image: it must not change.
_NUMBERS = {name: number for number, name in enumerate(_CORRUPTIONS)}
_WITHOUT_CHANCE = {
    *("defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"),
    *("gaussian_blur", "saturate"),
}
# Threads of Python take turns but inside long calls. Drawing random words is no such call, and what goes image by image
# makes short ones unless images are large: a second thread then takes away more than it adds.
_ONE_THREAD = {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "fog"}
_ONE_THREAD_IF_SMALL = {
    *("glass_blur", "motion_blur", "snow", "frost", "elastic_transform", "pixelate", "jpeg_compression"),
}
_SMALL = 1 << 15  # values of an image
_CHUNK_BYTES = 1 << 17  # an image batch this large, in float32, still fits a core's own cache


def corrupt(
    images: np.ndarray,
    name: str,
    severity: int,
    seed: int = 0,
    constants: str = "cifar",
    *,
    first_index: int = 0,
    threads: int | None = None,
) -> UInt8[np.ndarray, "batch height width channels"]:
    """The images (uint8, NHWC, 1 or 3 channels) under one corruption, as a new array of the same shape.

    `constants` chooses the published strengths, "cifar" or "imagenet". Image i of the call is image
    `first_index + i` of its data set, and its result depends on (seed, name, severity, that index) alone: parts
    of a data set come out as they would inside the whole. Up to `threads` (torch's number by default) are used where
    they help; they change the time, not the result.
    """
    _check_images(images)
    if name not in _NUMBERS:
        raise unknown_name("name", name, TEST + VALIDATION)
    if isinstance(severity, bool) or severity not in (1, 2, 3, 4, 5) or not isinstance(severity, int | np.integer):
        raise ValueError(f"severity must be an integer 1..5, got {severity!r}")
    if constants not in CONSTANTS:
        raise unknown_name("constants", constants, tuple(CONSTANTS))
    _check_count("seed", seed, 0)
    _check_count("first_index", first_index, 0)
    if threads is not None:
        _check_count("threads", threads, 1)

    _keep_freed_memory()
    function = _CORRUPTIONS[name]
    strength = CONSTANTS[constants][name][severity - 1]
    out = np.empty_like(images)

    values = images[0].size if len(images) else 1
    size = max(1, _CHUNK_BYTES // values)

    def work(first: int, last: int) -> None:
        for start in range(first, last, size):
            stop = min(start + size, last)
            generators = [
                Generator(SFC64(SeedSequence(int(seed), spawn_key=(_NUMBERS[name], int(severity), index))))
                for index in (() if name in _WITHOUT_CHANCE else range(first_index + start, first_index + stop))
            ]
            out[start:stop] = function(images[start:stop], strength, generators)

    threads = max(1, min(threads or torch.get_num_threads(), -(-len(images) // size)))
    if name in _ONE_THREAD or (name in _ONE_THREAD_IF_SMALL and values < _SMALL):
        threads = 1
    ends = [len(images) * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:  # starts a thread for each part but the first
        others = pool.map(work, ends[1:-1], ends[2:])
        work(ends[0], ends[1])
        list(others)  # raises what they raised
    return out


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Frees one large block, untouched.

    glibc gives large blocks back to the system at once, and page faults on new ones then cost more than the
    arithmetic; it keeps blocks up to the size of the largest that was freed before.
    """
    np.empty(1 << 24, np.uint8)


def _check_images(images: object) -> None:
    if not isinstance(images, np.ndarray):
        raise TypeError(f"images must be a uint8 array [batch, height, width, channels], got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise ValueError(f"images must be uint8 (0..255), got {images.dtype}")
    if images.ndim != 4:
        raise ValueError(f"images must have 4 axes [batch, height, width, channels], got shape {images.shape}")
    if images.shape[3] not in (1, 3):
        raise ValueError(f"images must have 1 or 3 channels in the last axis, got shape {images.shape}")
    if min(images.shape[1:3]) < 1:
        raise ValueError(f"images must have at least one pixel, got shape {images.shape}")


def _check_count(argument: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{argument} must be an integer >= {least}, got {value!r}")
