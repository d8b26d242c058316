"""Draws the contact sheets of docs/corruptions.md: 19 corruptions by 5 severities.

python benchmarks/corruption_sheets.py CIFAR.npy        (uint8 [n, 32, 32, 3]; needs scikit-image for its photograph)
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bacs.corruptions import TEST, VALIDATION, corrupt

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
LABEL = 120


def sheet(image: np.ndarray, constants: str, cell: int, columns: int) -> Image.Image:
    """Names in rows, the clean image and severities 1 to 5 across; `columns` blocks of names side by side."""
    names = TEST + VALIDATION
    rows = -(-len(names) // columns)
    width = LABEL + 6 * (cell + 2)
    canvas = Image.new("RGB", (columns * width, rows * (cell + 2) + 16), "white")
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(12)
    for block in range(columns):
        for place, title in enumerate(("clean", "1", "2", "3", "4", "5")):
            draw.text((block * width + LABEL + place * (cell + 2) + 4, 1), title, "black", font)
    for number, name in enumerate(names):
        left, top = number // rows * width, 16 + number % rows * (cell + 2)
        draw.text((left + 4, top + cell // 2 - 6), name, "black", font)
        for severity in range(6):
            shown = image if severity == 0 else corrupt(image[None], name, severity, constants=constants)[0]
            picture = Image.fromarray(shown)
            if picture.width < cell:
                picture = picture.resize((cell, cell), Image.Resampling.NEAREST)
            else:
                picture = picture.resize((cell, cell), Image.Resampling.LANCZOS)
            canvas.paste(picture, (left + LABEL + severity * (cell + 2), top))
    return canvas


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cifar", type=Path)
    parser.add_argument("--index", type=int, default=1, help="which image of the array")
    arguments = parser.parse_args()
    from skimage import data

    FIGURES.mkdir(parents=True, exist_ok=True)
    small = np.load(arguments.cifar)[arguments.index]
    sheet(small, "cifar", 64, 2).save(FIGURES / "corruptions_cifar.png", optimize=True)
    # NASA's portrait of Eileen Collins, in the public domain.
    large = np.asarray(
        Image.fromarray(data.astronaut()).resize((256, 256), Image.Resampling.LANCZOS).crop((16, 0, 240, 224))
    )
    sheet(large, "imagenet", 128, 2).save(FIGURES / "corruptions_imagenet.jpg", quality=82, optimize=True)


if __name__ == "__main__":
    main()
