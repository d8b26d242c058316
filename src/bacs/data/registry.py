"""The published array sets by name: which files they consist of, who reads them, where they are to be had.

URLs and checksums are the publishers' own or those of TensorFlow Datasets and torchvision, which check them too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bacs.corruptions import TEST, VALIDATION
from bacs.data import classes
from bacs.data.download import Remote
from bacs.data.formats import arrays, cifar, idx, stl, svhn, usps

Reader = Callable[[Sequence[Path]], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class Layout:
    """One published form of a set: the folders it may lie in, its files by split, their reader, and who has them."""

    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    read: Reader
    remotes: Mapping[str, tuple[Remote, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """A set by its class names and the forms it is published in, the preferred one first."""

    classes: tuple[str, ...]
    layouts: tuple[Layout, ...]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.layouts[0].files)


def _published(classes: tuple[str, ...], *layouts: Layout) -> Published:
    return Published(classes, layouts)


def _cifar_layouts(
    name: str, files: dict[str, tuple[str, ...]], digest: str, digest_binary: str
) -> tuple[Layout, Layout]:
    fine = name == "cifar-100"
    folder, folder_binary = (
        (f"{name}-python", f"{name}-binary") if fine else (f"{name}-batches-py", f"{name}-batches-bin")
    )
    url = "https://www.cs.toronto.edu/~kriz/"
    python = Remote(f"{url}{name}-python.tar.gz", f"{name}-python.tar.gz", digest, (folder,))
    binary = Remote(f"{url}{name}-binary.tar.gz", f"{name}-binary.tar.gz", digest_binary, (folder_binary,))
    files_binary = {split: tuple(f"{file}.bin" for file in names) for split, names in files.items()}
    read_pickles = partial(cifar.read_pickles, label_key=b"fine_labels" if fine else b"labels")
    read_binary = partial(cifar.read_binary, label_bytes=2 if fine else 1)
    return (
        Layout((folder,), files, read_pickles, dict.fromkeys(files, (python,))),
        Layout((folder_binary,), files_binary, read_binary, dict.fromkeys(files, (binary,))),
    )


def _layout(folders: tuple[str, ...], url: str, files: dict[str, dict[str, str]], read: Reader) -> Layout:
    """Plain files below one address, by split: their names and checksums. A .gz may lie there unpacked."""
    remotes = {
        split: tuple(Remote(f"{url}{file}", f"{folders[0]}/{file}", digest) for file, digest in digests.items())
        for split, digests in files.items()
    }
    names = {split: tuple(file.removesuffix(".gz") for file in digests) for split, digests in files.items()}
    return Layout(folders, names, read, remotes)


def _idx_layout(folders: tuple[str, ...], url: str, digests: dict[str, tuple[str, str]]) -> Layout:
    names = ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")
    files = {
        split: {f"{prefix}-{name}": f"md5:{digest}" for name, digest in zip(names, digests[split], strict=True)}
        for split, prefix in {"train": "train", "test": "t10k"}.items()
    }
    return _layout(folders, url, files, lambda paths: idx.read(*paths))


def _read_npy(paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    return arrays.read_images(paths[0]), arrays.read_npy(paths[1])


def _corrupted_layout(folder: str, record: int, digest: str) -> Layout:
    tar = Remote(f"https://zenodo.org/records/{record}/files/{folder}.tar", f"{folder}.tar", digest, (folder,))
    names = (*TEST, *VALIDATION)
    return Layout(
        (folder,),
        {name: (f"{name}.npy", "labels.npy") for name in names},
        _read_npy,
        dict.fromkeys(names, (tar,)),
    )


_SVHN = {
    "train": {"train_32x32.mat": "sha256:435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"},
    "test": {"test_32x32.mat": "sha256:cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"},
    "extra": {"extra_32x32.mat": "sha256:a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3"},
}
_USPS = {
    "train": {"usps.bz2": "md5:ec16c51db3855ca6c91edd34d0e9b197"},
    "test": {"usps.t.bz2": "md5:8ea070ee2aca1ac39742fdd1ef5ed118"},
}
_CIFAR10_1 = {
    "test": {
        "cifar10.1_v6_data.npy": "sha256:2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
        "cifar10.1_v6_labels.npy": "sha256:ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
    }
}
_STL10 = Remote(
    "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    "stl10_binary.tar.gz",
    "sha256:f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
    ("stl10_binary",),
)
_STL10_FILES = {
    "train": ("train_X.bin", "train_y.bin"),
    "test": ("test_X.bin", "test_y.bin"),
    "unlabeled": ("unlabeled_X.bin",),
}

PUBLISHED: dict[str, Published] = {
    "cifar10": _published(
        classes.CIFAR10,
        *_cifar_layouts(
            "cifar-10",
            {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
            "md5:c58f30108f718f92721af3b95e74349a",
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    "cifar100": _published(
        classes.CIFAR100,
        *_cifar_layouts(
            "cifar-100",
            {"train": ("train",), "test": ("test",)},
            "md5:eb9058c3a382ffc7106e4002c42a8d85",
            "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
    "cifar10.1": _published(
        classes.CIFAR10,
        _layout(
            ("cifar10.1", "CIFAR-10.1", "CIFAR-10.1/datasets"),
            "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets/",
            _CIFAR10_1,
            _read_npy,
        ),
    ),
    "svhn": _published(
        classes.DIGITS,
        _layout(("svhn", "SVHN"), "http://ufldl.stanford.edu/housenumbers/", _SVHN, lambda paths: svhn.read(*paths)),
    ),
    "mnist": _published(
        classes.DIGITS,
        _idx_layout(
            ("mnist", "MNIST/raw", "MNIST"),
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            {
                "train": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
                "test": ("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
            },
        ),
    ),
    "usps": _published(
        classes.DIGITS,
        _layout(
            ("usps", "USPS"),
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/",
            _USPS,
            lambda paths: usps.read(*paths),
        ),
    ),
    "fashion-mnist": _published(
        classes.FASHION,
        _idx_layout(
            ("fashion-mnist", "FashionMNIST/raw", "FashionMNIST"),
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            {
                "train": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"),
                "test": ("bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
            },
        ),
    ),
    "stl10": _published(
        classes.STL10,
        Layout(
            ("stl10_binary",),
            _STL10_FILES,
            lambda paths: stl.read(*paths) if len(paths) == 2 else (stl.read_images(paths[0]), None),
            dict.fromkeys(_STL10_FILES, (_STL10,)),
        ),
    ),
}

# Published corrupted copies; their "splits" are the corruptions.
CORRUPTED: dict[str, Published] = {
    "cifar10-c": _published(
        classes.CIFAR10, _corrupted_layout("CIFAR-10-C", 2535967, "md5:56bf5dcef84df0e2308c6dcbcbbd8499")
    ),
    "cifar100-c": _published(
        classes.CIFAR100, _corrupted_layout("CIFAR-100-C", 3555552, "md5:11f0ed0f1191edbf9fa23466ae6021d3")
    ),
}
