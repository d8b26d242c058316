"""Pictures to corrupt: shades, edges and flat patches, as photographs have them."""

import numpy as np
import pytest
from scipy import ndimage


def draw(batch: int, height: int, width: int, channels: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pictures = ndimage.gaussian_filter(rng.standard_normal((batch, height, width, channels)), (0, 3, 3, 0), mode="wrap")
    pictures = 120 + 500 * pictures + 60 * rng.standard_normal((batch, 1, 1, channels))
    for picture in pictures:
        top, left = rng.integers(height), rng.integers(width)
        picture[top : top + height // 3, left : left + width // 3] += 80
        picture[: rng.integers(1, height)] -= 40
    return np.clip(pictures, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def small() -> np.ndarray:
    return draw(24, 32, 32, 3)


@pytest.fixture(scope="session")
def large() -> np.ndarray:
    return draw(2, 96, 120, 3)
