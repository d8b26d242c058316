"""Every reader of pictures shows the same pixels: a data set, a folder to adapt to, a Parquet file, the service."""

import io
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import bacs
from bacs.data.decode import TooLarge, decode
from bacs.data.pictures import pictures
from bacs.serve.pictures import decode_pictures
from bacs.training.augment import RandomResizedCrop

FIT = bacs.Preprocessing((0.5,) * 3, (0.5,) * 3, size=(12, 12), crop=224 / 256, interpolation="bicubic")


def rotated(rng):
    """A photo that lies on its side, and says so."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)), {"exif": exif}


def transparent(rng):
    return Image.fromarray(rng.integers(0, 256, (20, 30, 4), dtype=np.uint8)), {}


def palette(rng):
    """256 colours, of which one is transparent."""
    image = Image.fromarray(rng.integers(0, 256, (20, 30), dtype=np.uint8)).convert("P")
    return image, {"transparency": 7}


def grey(rng):
    return Image.fromarray(rng.integers(0, 256, (20, 30), dtype=np.uint8)), {}


def grey_16(rng):
    return Image.fromarray(rng.integers(0, 65536, (20, 30), dtype=np.uint16)), {}


KINDS = {"rotated": rotated, "transparent": transparent, "palette": palette, "grey": grey, "grey_16": grey_16}


@pytest.fixture
def folder(tmp_path, rng):
    """One picture of each kind, named by it."""
    for name, make in KINDS.items():
        image, options = make(rng)
        image.save(tmp_path / f"{name}.png", **options)
    return tmp_path


def test_all_ways_to_read_a_folder_give_the_same_pixels(folder):
    adapted = pictures(folder, FIT)
    assert [path.rsplit("/", 1)[1] for path in adapted.paths] == sorted(f"{name}.png" for name in KINDS)
    encoded = [(folder / path).read_bytes() for path in adapted.paths]
    pq.write_table(pa.table({"image": encoded}), folder / "all.parquet")
    np.testing.assert_array_equal(bacs.data.load(folder, size=12).images[:], adapted.images)
    np.testing.assert_array_equal(pictures(folder / "all.parquet", FIT).images, adapted.images)
    np.testing.assert_array_equal(decode_pictures(encoded, [FIT], max_pixels=600)[0], adapted.images)


def test_a_data_set_of_rotated_and_transparent_files_is_upright_on_white(folder):
    turned = np.asarray(Image.open(folder / "rotated.png"))
    (folder / "classes" / "a").mkdir(parents=True)
    (folder / "rotated.png").rename(folder / "classes" / "a" / "rotated.png")
    found = bacs.data.load(folder / "classes").images
    np.testing.assert_array_equal(found[0], np.rot90(turned, -1))  # clockwise, as orientation 6 says
    colours = np.asarray(Image.open(folder / "transparent.png")).astype(float)
    share = colours[..., 3:] / 255
    (folder / "classes" / "a" / "rotated.png").unlink()
    (folder / "transparent.png").rename(folder / "classes" / "a" / "transparent.png")
    found = bacs.data.load(folder / "classes").images
    np.testing.assert_allclose(found[0], colours[..., :3] * share + 255 * (1 - share), atol=1)


def test_training_cuts_from_the_upright_picture(folder):
    files = (folder / "rotated.png",)
    images = bacs.data.FolderImages(files, (30, 20), crop=None)
    whole = RandomResizedCrop(min_area=1.0, flip=False)
    # The whole area in the picture's own shape: nothing is cut or resized.
    ratio = (math.log(20 / 30) / math.log(4 / 3) + 1) / 2
    uniforms = torch.tensor([[1.0, ratio, 0.0, 0.0, 1.0]], dtype=torch.float64)
    np.testing.assert_array_equal(whole(images, np.array([0]), uniforms)[0].numpy(), images[0])


def test_more_pixels_than_allowed_are_refused_before_they_are_decoded(monkeypatch):
    buffer = io.BytesIO()
    Image.new("RGB", (30, 20)).save(buffer, "PNG")
    assert decode(buffer.getvalue(), 3, max_pixels=600).size == (30, 20)
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda image: pytest.fail("it was decoded"))
    with pytest.raises(TooLarge, match=r"^at most 599 pixels are allowed, got 30 x 20$"):
        decode(buffer.getvalue(), 3, max_pixels=599)
