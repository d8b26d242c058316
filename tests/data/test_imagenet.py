import numpy as np
import pytest

from bacs.data import imagenet, load
from bacs.errors import DataError


def labels_by_folder(found) -> dict[str, int]:
    return {file.parent.name: label for file, label in zip(found.images.files, found.labels.tolist(), strict=True)}


def test_wnids_are_the_thousand_and_two_hundred():
    wnids, renditions = imagenet.wnids()
    assert len(wnids) == len(set(wnids)) == 1000
    assert list(wnids) == sorted(wnids)
    assert renditions.sum() == 200
    # Well-known places: tench, goldfish, tabby cat, golden retriever, toilet tissue.
    for number, wnid in {0: "n01440764", 1: "n01443537", 281: "n02123045", 207: "n02099601", 999: "n15075141"}.items():
        assert wnids[number] == wnid
    # ImageNet-R shows the goldfish and the golden retriever, but neither the tench nor toilet tissue.
    assert renditions[[1, 207]].all()
    assert not renditions[[0, 999]].any()


def test_imagenet_labels_are_places_among_all_wnids(tmp_path, write_pictures):
    pictures = {
        "n01443537/val_2.JPEG": (300, 260),
        "n01440764/val_3.JPEG": (256, 400),
        "n15075141/val_1.JPEG": (90, 90),
    }
    write_pictures(tmp_path / "imagenet" / "val", pictures)
    found = load("imagenet", data_dir=tmp_path)
    assert labels_by_folder(found) == {"n01440764": 0, "n01443537": 1, "n15075141": 999}
    assert found.images.shape == (3, 224, 224, 3)
    assert found.images[1:].shape == (2, 224, 224, 3)
    assert len(found.classes) == 1000
    assert found.class_mask is None
    assert load("imagenet", data_dir=tmp_path, size=64).images[0].shape == (64, 64, 3)


def test_imagenet_r_brings_its_mask(tmp_path, write_pictures):
    write_pictures(tmp_path / "imagenet-r", {"n01443537/art_0.jpg": (40, 30), "n02099601/toy_3.jpg": (30, 50)})
    found = load("imagenet-r", data_dir=tmp_path)
    assert labels_by_folder(found) == {"n01443537": 1, "n02099601": 207}
    assert found.class_mask.sum() == 200
    assert found.class_mask[found.labels].all()


def test_imagenet_c_files_are_not_cropped_again(tmp_path, write_pictures):
    folder = tmp_path / "imagenet-c" / "fog" / "3"
    write_pictures(folder, {"n01443537/val_1.JPEG": (224, 224), "n01440764/val_2.JPEG": (224, 256)})
    found = load("imagenet-c/fog/3", data_dir=tmp_path)
    good = found.labels.tolist().index(1)
    assert found.images[good].shape == (224, 224, 3)
    with pytest.raises(DataError, match="224 x 256 pixels, expected 224 x 224"):
        found.images[1 - good]


def test_imagenet_c_is_found_below_its_family(tmp_path, write_pictures):
    write_pictures(tmp_path / "ImageNet-C" / "extra" / "spatter" / "1", {"n01443537/val_1.JPEG": (224, 224)})
    assert load("imagenet-c/spatter/1", data_dir=tmp_path).labels.tolist() == [1]


def test_every_corruption_belongs_to_one_archive():
    from bacs.corruptions import TEST, VALIDATION

    members = [name for _, names in imagenet._FAMILIES.values() for name in names]
    assert sorted(members) == sorted((*TEST, *VALIDATION))


def test_foreign_class_folders_are_named(tmp_path, write_pictures):
    write_pictures(tmp_path / "imagenet-r", {"n01443537/a.jpg": (9, 9), "n01440764/a.jpg": (9, 9)})
    with pytest.raises(DataError, match="n01440764 is none of the 200 wnids of imagenet-r"):
        load("imagenet-r", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("imagenet", r"put one folder of images for each wnid into .*imagenet/val, from https://image-net.org"),
        ("imagenet-r", r"into .*imagenet-r, from https://people.eecs.berkeley.edu"),
        ("imagenet-c/snow/2", r"into .*imagenet-c/snow/2, from https://zenodo.org/records/2235448/files/weather.tar"),
    ],
)
def test_missing_folders_say_what_goes_where(tmp_path, write_pictures, name, message):
    write_pictures(tmp_path, {"imagenet/val/flat_1.JPEG": (9, 9), "something-else/x.png": (9, 9)})
    with pytest.raises(DataError, match=message):
        load(name, data_dir=tmp_path)


def test_splits(tmp_path, write_pictures):
    write_pictures(tmp_path / "ILSVRC2012" / "train", {"n01443537/n01443537_1.JPEG": (9, 9)})
    assert load("imagenet", "train", data_dir=tmp_path).labels.dtype == np.int64
    with pytest.raises(ValueError, match="split must be one of train, test, val; got 'trian'"):
        load("imagenet", "trian", data_dir=tmp_path)
    with pytest.raises(ValueError, match="split must be one of test; got 'train'"):
        load("imagenet-r", "train", data_dir=tmp_path)
