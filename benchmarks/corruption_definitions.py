"""The definition of each corruption, one image at a time, as plainly as scikit-image and OpenCV allow.

An oracle for `corruption_fidelity.py`: slow, and independent of `bacs.corruptions` apart from the table of
constants. Functions take an image as floats in [0, 1], height x width x 3, and give one back.
"""

from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from scipy import ndimage
from skimage import color, filters, util

from bacs.corruptions.constants import CONSTANTS


def corrupt(image, name, severity, rng, constants, frost_photographs):
    """uint8 in, uint8 out: floats are cut, not rounded."""
    strength = CONSTANTS[constants][name][severity - 1]
    if name == "frost":
        result = frost(image / 255, strength, rng, frost_photographs)
    else:
        result = globals()[name](image / 255, strength, rng)
    return (np.clip(result, 0, 1) * 255).astype(np.uint8)


def gaussian_noise(x, sigma, rng):
    return x + rng.normal(scale=sigma, size=x.shape)


def shot_noise(x, photons, rng):
    return rng.poisson(x * photons) / photons


def impulse_noise(x, amount, rng):
    return util.random_noise(x, mode="s&p", amount=amount, rng=rng)


def speckle_noise(x, sigma, rng):
    return x + x * rng.normal(scale=sigma, size=x.shape)


def gaussian_blur(x, sigma, rng):
    return filters.gaussian(x, sigma=sigma, channel_axis=-1)


def defocus_blur(x, disk, rng):
    reach = max(8, int(disk.radius))
    grid = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1])
    kernel = np.float32(grid <= disk.radius)
    size = 3 if disk.radius <= 8 else 5
    kernel = cv2.GaussianBlur(kernel / kernel.sum(), (size, size), disk.rim_sigma)
    return cv2.filter2D(x, -1, kernel)


def glass_blur(x, glass, rng):
    x = np.uint8(filters.gaussian(x, sigma=glass.sigma, channel_axis=-1) * 255)
    height, width = x.shape[:2]
    for _ in range(glass.rounds):
        for row in range(height - glass.reach, glass.reach, -1):
            for column in range(width - glass.reach, glass.reach, -1):
                dx, dy = rng.integers(-glass.reach, glass.reach, size=2)
                x[row, column] = x[row + dy, column + dx]
    return filters.gaussian(x / 255, sigma=glass.sigma, channel_axis=-1)


def smear(x, motion, degrees):
    """ImageMagick's motion blur of an image of bytes / 255, rounded to bytes."""
    rows, columns = np.mgrid[: x.shape[0], : x.shape[1]]
    total, weights = np.zeros_like(x), 0
    for i in range(2 * motion.radius + 1):
        weight = np.exp(-i * i / (2 * motion.sigma**2))
        y = rows + int(np.ceil(i * np.sin(np.deg2rad(degrees)) - 0.5))
        z = columns + int(np.ceil(i * np.cos(np.deg2rad(degrees)) - 0.5))
        total += weight * x[np.clip(y, 0, x.shape[0] - 1), np.clip(z, 0, x.shape[1] - 1)]
        weights += weight
    # A little more than the byte, so that cutting floats to bytes later does not undo the rounding.
    return (np.rint(total / weights * 255) + 1e-6) / 255


def motion_blur(x, motion, rng):
    return smear(x, motion, rng.uniform(-45, 45))


def clipped_zoom(x, factor):
    side = x.shape[0]
    crop = int(np.ceil(side / factor))
    top = (side - crop) // 2
    x = ndimage.zoom(x[top : top + crop, top : top + crop], (factor, factor, 1), order=1)
    trim = (x.shape[0] - side) // 2
    return x[trim : trim + side, trim : trim + side]


def zoom_blur(x, zoom, rng):
    x = x.astype(np.float32)
    zoomed = [clipped_zoom(x, factor) for factor in np.arange(1, zoom.stop, zoom.step)]
    return (x + np.sum(zoomed, axis=0)) / (len(zoomed) + 1)


def snow(x, c, rng):
    x = x.astype(np.float32)
    layer = clipped_zoom(rng.normal(c.mean, c.deviation, size=x.shape[:2])[..., None], c.zoom)[..., 0]
    layer[layer < c.threshold] = 0
    layer = np.uint8(np.clip(layer, 0, 1) * 255) / 255
    layer = smear(layer, c.motion, rng.uniform(-135, -45))[..., None]
    white = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None] * 1.5 + 0.5
    return c.keep * x + (1 - c.keep) * np.maximum(x, white) + layer + np.rot90(layer, k=2)


def frost(x, c, rng, photographs):
    picture = photographs[rng.integers(5)]
    if c.stride == 5:
        picture = cv2.resize(picture, (0, 0), fx=0.2, fy=0.2)
    side = x.shape[0]
    top, left = rng.integers(0, picture.shape[0] - side), rng.integers(0, picture.shape[1] - side)
    return c.image * x + c.frost * picture[top : top + side, left : left + side] / 255


def load_photographs(folder: Path):
    """The five pictures that the published scripts choose from."""
    names = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
    return [np.asarray(Image.open(folder / name).convert("RGB")) for name in names]


def plasma(side, decay, rng):
    """Diamond-square on a torus, point by point."""
    heights, step, wibble = {(0, 0): 0.0}, side, 100.0

    def fill(y, x, neighbours):
        mean = sum(heights[(y + dy) % side, (x + dx) % side] for dy, dx in neighbours) / 4
        heights[y, x] = mean + wibble * rng.uniform(-wibble, wibble)

    while step > 1:
        half = step // 2
        corners = [(-half, -half), (-half, half), (half, -half), (half, half)]
        sides = [(-half, 0), (half, 0), (0, -half), (0, half)]
        for y in range(half, side, step):
            for x in range(half, side, step):
                fill(y, x, corners)
        for y in range(0, side, step):
            for x in range(half, side, step):
                fill(y, x, sides)
        for y in range(half, side, step):
            for x in range(0, side, step):
                fill(y, x, sides)
        step, wibble = half, wibble / decay
    grid = np.array([[heights[y, x] for x in range(side)] for y in range(side)])
    return (grid - grid.min()) / (grid.max() - grid.min())


def fog(x, c, rng):
    side = 2 ** int(np.ceil(np.log2(x.shape[0])))
    layer = plasma(side, c.decay, rng)[: x.shape[0], : x.shape[1], None]
    return (x + c.amount * layer) * x.max() / (x.max() + c.amount)


def brightness(x, amount, rng):
    hsv = color.rgb2hsv(x)
    hsv[..., 2] = np.clip(hsv[..., 2] + amount, 0, 1)
    return color.hsv2rgb(hsv)


def saturate(x, c, rng):
    hsv = color.rgb2hsv(x)
    hsv[..., 1] = np.clip(hsv[..., 1] * c.factor + c.offset, 0, 1)
    return color.hsv2rgb(hsv)


def contrast(x, factor, rng):
    means = x.mean(axis=(0, 1))
    return (x - means) * factor + means


def pixelate(x, scale, rng):
    side = x.shape[0]
    picture = Image.fromarray(np.uint8(np.rint(x * 255)))
    for size in (int(side * scale), side):
        picture = picture.resize((size, size), Image.Resampling.BOX)
    return (np.asarray(picture) + 1e-6) / 255


def jpeg_compression(x, quality, rng):
    file = BytesIO()
    Image.fromarray(np.uint8(np.rint(x * 255))).save(file, "JPEG", quality=quality)
    return (np.asarray(Image.open(file)) + 1e-6) / 255


def elastic_transform(x, c, rng):
    side = x.shape[0]
    x = x.astype(np.float32)
    centre, arm = side // 2, side // 3
    corners = np.float32([[centre + arm, centre + arm], [centre + arm, centre - arm], [centre - arm, centre - arm]])
    moved = corners + rng.uniform(-side * c.jitter, side * c.jitter, size=(3, 2)).astype(np.float32)
    x = cv2.warpAffine(x, cv2.getAffineTransform(corners, moved), (side, side), borderMode=cv2.BORDER_REFLECT_101)
    shifts = [
        filters.gaussian(rng.uniform(-1, 1, size=(side, side)), side * c.sigma, mode="reflect", truncate=3)
        * side
        * c.displacement
        for _ in range(2)
    ]
    rows, columns = np.mgrid[:side, :side]
    where = [rows + shifts[1], columns + shifts[0]]
    return np.stack([ndimage.map_coordinates(x[..., k], where, order=1, mode="reflect") for k in range(3)], axis=-1)


def spatter(x, c, rng):
    x = x.astype(np.float32)
    film = filters.gaussian(rng.normal(c.mean, c.deviation, size=x.shape[:2]), sigma=c.sigma)
    film[film < c.threshold] = 0
    if c.mud:
        cover = filters.gaussian((film > c.threshold).astype(np.float32), sigma=c.strength)[..., None]
        cover[cover < 0.8] = 0
        return x * (1 - cover) + cover * np.array([63, 42, 20]) / 255
    film = (film * 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(film, 50, 150), cv2.DIST_L2, 5)
    distance = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    relief = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    distance = cv2.blur(cv2.filter2D(cv2.equalizeHist(distance), cv2.CV_8U, relief), (3, 3)).astype(np.float32)
    light = film * distance
    light = light / light.max() if light.max() > 0 else light
    return x + light[..., None] * c.strength * np.array([175, 238, 238]) / 255
