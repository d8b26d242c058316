"""The published strengths of every corruption, severity 1 to 5, for CIFAR-C and for ImageNet-C.

Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", and the scripts that made the two data sets. Lengths are in pixels, whatever the size of the image,
unless a line says otherwise.
"""

from typing import Any, NamedTuple


class Disk(NamedTuple):
    """Out-of-focus disk: its radius, and the sigma of the Gaussian that softens its rim, in pixels."""

    radius: float
    rim_sigma: float


class Glass(NamedTuple):
    """Frosted glass: blur before and after (pixels), reach of a pixel's jump, rounds of jumping."""

    sigma: float
    reach: int
    rounds: int


class Motion(NamedTuple):
    """One-sided Gaussian of `2 radius + 1` samples along the direction of motion, in pixels."""

    radius: int
    sigma: float


class Zoom(NamedTuple):
    """Zoom factors 1, 1 + step, ... below `stop`."""

    stop: float
    step: float


class Snow(NamedTuple):
    """Flakes N(mean, deviation) enlarged by `zoom`, cut at `threshold`, smeared; `keep`: share left unbleached."""

    mean: float
    deviation: float
    zoom: float
    threshold: float
    motion: Motion
    keep: float


class Frost(NamedTuple):
    """Weights of the image and of the frost picture, of which every `stride`-th pixel is shown."""

    image: float
    frost: float
    stride: int


class Fog(NamedTuple):
    """Height of the fog, and how much smaller each finer scale of it is."""

    amount: float
    decay: float


class Elastic(NamedTuple):
    """Displacement, its smoothness and the jitter of the affine map, as fractions of the image's shorter side."""

    displacement: float
    sigma: float
    jitter: float


class Spatter(NamedTuple):
    """Liquid N(mean, deviation) blurred and cut at `threshold`; `strength`: opacity of water, blur of mud."""

    mean: float
    deviation: float
    sigma: float
    threshold: float
    strength: float
    mud: bool


class Saturation(NamedTuple):
    """HSV saturation becomes factor * saturation + offset."""

    factor: float
    offset: float


CIFAR: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": (500.0, 250.0, 100.0, 75.0, 50.0),
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    "defocus_blur": (Disk(0.3, 0.4), Disk(0.4, 0.5), Disk(0.5, 0.6), Disk(1.0, 0.2), Disk(1.5, 0.1)),
    "glass_blur": (
        Glass(0.05, 1, 1),
        Glass(0.25, 1, 1),
        Glass(0.4, 1, 1),
        Glass(0.25, 1, 2),
        Glass(0.4, 1, 2),
    ),
    "motion_blur": (Motion(6, 1.0), Motion(6, 1.5), Motion(6, 2.0), Motion(8, 2.0), Motion(9, 2.5)),
    "zoom_blur": (Zoom(1.06, 0.01), Zoom(1.11, 0.01), Zoom(1.16, 0.01), Zoom(1.21, 0.01), Zoom(1.26, 0.01)),
    "snow": (
        Snow(0.1, 0.2, 1.0, 0.6, Motion(8, 3.0), 0.95),
        Snow(0.1, 0.2, 1.0, 0.5, Motion(10, 4.0), 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, Motion(10, 4.0), 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, Motion(12, 6.0), 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, Motion(14, 12.0), 0.8),
    ),
    "frost": (Frost(1.0, 0.2, 5), Frost(1.0, 0.3, 5), Frost(0.9, 0.4, 5), Frost(0.85, 0.4, 5), Frost(0.75, 0.45, 5)),
    "fog": (Fog(0.2, 3.0), Fog(0.5, 3.0), Fog(0.75, 2.5), Fog(1.0, 2.0), Fog(1.5, 1.75)),
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    "elastic_transform": (
        Elastic(0.0, 0.0, 0.08),
        Elastic(0.05, 0.2, 0.07),
        Elastic(0.08, 0.06, 0.06),
        Elastic(0.1, 0.04, 0.05),
        Elastic(0.1, 0.03, 0.03),
    ),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": (80, 65, 58, 50, 40),
    "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),
    "spatter": (
        Spatter(0.62, 0.1, 0.7, 0.7, 0.5, False),
        Spatter(0.65, 0.1, 0.8, 0.7, 0.5, False),
        Spatter(0.65, 0.3, 1.0, 0.69, 0.5, False),
        Spatter(0.65, 0.1, 0.7, 0.69, 0.6, True),
        Spatter(0.65, 0.1, 0.5, 0.68, 0.6, True),
    ),
    "saturate": (
        Saturation(0.3, 0.0),
        Saturation(0.1, 0.0),
        Saturation(1.5, 0.0),
        Saturation(2.0, 0.1),
        Saturation(2.5, 0.2),
    ),
}

IMAGENET: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60.0, 25.0, 12.0, 5.0, 3.0),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "defocus_blur": (Disk(3.0, 0.1), Disk(4.0, 0.5), Disk(6.0, 0.5), Disk(8.0, 0.5), Disk(10.0, 0.5)),
    "glass_blur": (Glass(0.7, 1, 2), Glass(0.9, 2, 1), Glass(1.0, 2, 3), Glass(1.1, 3, 2), Glass(1.5, 4, 2)),
    "motion_blur": (Motion(10, 3.0), Motion(15, 5.0), Motion(15, 8.0), Motion(15, 12.0), Motion(20, 15.0)),
    "zoom_blur": (Zoom(1.11, 0.01), Zoom(1.16, 0.01), Zoom(1.21, 0.02), Zoom(1.26, 0.02), Zoom(1.31, 0.03)),
    "snow": (
        Snow(0.1, 0.3, 3.0, 0.5, Motion(10, 4.0), 0.8),
        Snow(0.2, 0.3, 2.0, 0.5, Motion(12, 4.0), 0.7),
        Snow(0.55, 0.3, 4.0, 0.9, Motion(12, 8.0), 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, Motion(12, 8.0), 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, Motion(12, 12.0), 0.55),
    ),
    "frost": (Frost(1.0, 0.4, 1), Frost(0.8, 0.6, 1), Frost(0.7, 0.7, 1), Frost(0.65, 0.7, 1), Frost(0.6, 0.75, 1)),
    "fog": (Fog(1.5, 2.0), Fog(2.0, 2.0), Fog(2.5, 1.7), Fog(2.5, 1.5), Fog(3.0, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    "elastic_transform": tuple(
        Elastic(*(244 / 224 * part for part in row))  # 244 stands in the script that made the 224-pixel set
        for row in ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": (25, 18, 15, 10, 7),
    "speckle_noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": (1.0, 2.0, 3.0, 4.0, 6.0),
    "spatter": (
        Spatter(0.65, 0.3, 4.0, 0.69, 0.6, False),
        Spatter(0.65, 0.3, 3.0, 0.68, 0.6, False),
        Spatter(0.65, 0.3, 2.0, 0.68, 0.5, False),
        Spatter(0.65, 0.3, 1.0, 0.65, 1.5, True),
        Spatter(0.67, 0.4, 1.0, 0.65, 1.5, True),
    ),
    "saturate": (
        Saturation(0.3, 0.0),
        Saturation(0.1, 0.0),
        Saturation(2.0, 0.0),
        Saturation(5.0, 0.1),
        Saturation(20.0, 0.2),
    ),
}

CONSTANTS = {"cifar": CIFAR, "imagenet": IMAGENET}
