import numpy as np
import pytest
import torch
from PIL import Image

from bacs.data import load
from bacs.data.folder import FolderImages, list_images
from bacs.errors import DataError


@pytest.fixture
def folder(tmp_path, rng):
    """Two classes of three 16 x 12 PNG files (lossless), and their pixels by path."""
    pixels = {}
    for name in ("cat/a.png", "cat/c.PNG", "cat/e.png", "dog/b.png", "dog/c.PNG", "dog/f.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pixels[path] = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels[path]).save(path)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "cat" / "._a.png").write_text("left by another system")
    return tmp_path, pixels


def test_classes_mix_whatever_the_files_are_called(tmp_path):
    for name in ("cat", "dog", "eel", "fox"):
        (tmp_path / name).mkdir()
        for number in range(100):
            (tmp_path / name / f"{name}_{number}.jpg").touch()
    files, names = list_images(tmp_path)
    assert len(set(files)) == 400
    assert [file.parent.name for file in files] == list(names)
    for start in range(0, 400, 100):  # each class has 25 of 100, give or take three deviations of 3.8
        assert all(13 <= names[start : start + 100].count(name) <= 37 for name in ("cat", "dog", "eel", "fox"))


def test_a_copy_in_another_format_has_the_same_order(tmp_path):
    for folder, ending in (("one", ".png"), ("two", ".JPEG")):
        for number in range(50):
            path = tmp_path / folder / f"class_{number % 3}" / f"{number}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    assert [file.stem for file in list_images(tmp_path / "one")[0]] == [
        file.stem for file in list_images(tmp_path / "two")[0]
    ]


def test_files_without_classes_keep_the_order_of_their_names(folder):
    files, names = list_images(folder[0] / "cat")
    assert [file.name for file in files] == ["a.png", "c.PNG", "e.png"]
    assert names == ()


def test_indexing_is_that_of_an_array(folder):
    files, _ = list_images(folder[0])
    lazy = FolderImages(files, (12, 16))
    whole = np.stack([folder[1][file] for file in files])
    assert lazy.shape == whole.shape
    assert len(lazy) == 6
    for index in (0, -1, np.int64(3), slice(1, 5, 2), [4, 0], np.array([2, 2, 1]), np.arange(6) > 3, slice(0, 0)):
        np.testing.assert_array_equal(lazy[index], whole[index])
    np.testing.assert_array_equal(lazy.first(2)[:], whole[:2])
    with pytest.raises(IndexError):
        lazy[6]


def test_serves_as_a_dataset_of_torch(folder):
    files, _ = list_images(folder[0])
    batches = list(torch.utils.data.DataLoader(FolderImages(files, (12, 16)), batch_size=4))
    assert [tuple(batch.shape) for batch in batches] == [(4, 12, 16, 3), (2, 12, 16, 3)]
    np.testing.assert_array_equal(batches[0][1].numpy(), folder[1][files[1]])


def test_crop_keeps_the_central_224_of_256(tmp_path):
    # A 512 x 256 picture whose value is its column: the central square is columns 144 to 368.
    columns = np.tile(np.linspace(0, 255, 512), (256, 1)).astype(np.uint8)
    Image.fromarray(columns).save(tmp_path / "ramp.png")
    image = FolderImages((tmp_path / "ramp.png",), (224, 224), crop=224 / 256)[0]
    assert image.shape == (224, 224, 3)
    np.testing.assert_array_equal(image[100, :, 0], columns[128, 144:368])


def test_crop_resizes_as_resize_then_crop_does(tmp_path, rng):
    picture = Image.fromarray(rng.integers(0, 256, (512, 640, 3), dtype=np.uint8))
    picture.save(tmp_path / "photo.png")
    found = FolderImages((tmp_path / "photo.png",), (224, 224), crop=224 / 256)[0]
    # The usual recipe: the shorter side to 256, then the central 224 x 224.
    expected = picture.resize((320, 256), Image.Resampling.BICUBIC).crop((48, 16, 48 + 224, 16 + 224))
    difference = np.abs(found.astype(int) - np.asarray(expected).astype(int))
    assert difference[2:-2, 2:-2].max() <= 1  # at the border the recipe also sees the pixels outside the crop


@pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK", "P"])
def test_other_colour_modes_become_rgb(tmp_path, mode):
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.new("RGB", (8, 8), (204, 204, 204)).convert(mode).save(path)
    np.testing.assert_array_equal(FolderImages((path,), (8, 8))[0], np.full((8, 8, 3), 204, np.uint8))


def test_truncated_foreign_missing_and_odd_sized_files_are_named(folder):
    root, _ = folder
    files = (root / "cat/a.png", root / "cat/notes.txt", root / "cat/none.png", root / "dog/b.png")
    files[0].write_bytes(files[0].read_bytes()[:100])
    images = FolderImages(files, (12, 17))
    with pytest.raises(DataError, match=r"a\.png: damaged"):
        images[0]
    with pytest.raises(DataError, match=r"notes\.txt: not a picture"):
        images[1]
    with pytest.raises(DataError, match=r"none\.png: missing"):
        images[2]
    with pytest.raises(DataError, match=r"b\.png: 16 x 12 pixels, expected 17 x 12"):
        images[[3]]


def test_no_picture_is_left_out_without_a_word(folder):
    root, pixels = folder
    (root / "empty").mkdir()
    assert len(load(root)) == 6
    (root / "top.jfif").write_bytes(next(iter(pixels)).read_bytes())
    with pytest.raises(DataError, match=r"1 lie in it, such as top.jfif, and 6 in its folders"):
        load(root)
    (root / "top.jfif").rename(root / "empty" / "top.jfif")
    assert len(load(root)) == 7
    (root / "cat" / "more").mkdir()
    (root / "cat" / "a.png").rename(root / "cat" / "more" / "a.png")
    with pytest.raises(DataError, match=r"1 lie deeper, such as cat/more/a.png; name the folder that holds"):
        load(root)


def test_pictures_that_all_lie_too_deep_are_not_denied(folder):
    root, _ = folder
    (root / "train").mkdir()
    for name in ("cat", "dog"):
        (root / name).rename(root / "train" / name)
    with pytest.raises(DataError, match=r"6 lie deeper, such as train/cat/a.png"):
        load(root)


def test_pictures_beside_folders_without_any_are_taken(folder):
    root, _ = folder
    (root / "cat" / "thumbs").mkdir()
    (root / "cat" / "thumbs" / "readme.txt").write_text("")
    assert len(list_images(root / "cat")[0]) == 3


def test_folders_without_images_are_named(tmp_path):
    with pytest.raises(DataError, match="no image files"):
        list_images(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        list_images(tmp_path / "nowhere")
