"""What rows, data sets and corruptions are called where people read."""

KINDS = {"single": "single models", "ensemble": "ensembles"}
"""The two kinds of row: scores of members alone, and of their mean."""
DATA = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar10.1": "CIFAR-10.1",
    "cifar10-9": "CIFAR-10 (9 classes)",
    "svhn": "SVHN",
    "mnist": "MNIST",
    "usps": "USPS",
    "stl10": "STL-10",
    "svhn->mnist": "SVHN → MNIST",
    "mnist->usps": "MNIST → USPS",
    "usps->mnist": "USPS → MNIST",
    "stl10-9": "CIFAR-10 → STL-10 (9 classes)",
    "imagenet": "ImageNet",
    "imagenet-r": "ImageNet-R",
    "fashion-mnist": "Fashion-MNIST",
    "fashion-mnist-part": "Fashion-MNIST (part)",
}


def of_data(data: str) -> str:
    """The name of a data set as it is printed.

    >>> of_data("cifar10-c")
    'CIFAR-10-C'
    """
    if data not in DATA and data.removesuffix("-c") in DATA:
        return DATA[data.removesuffix("-c")] + "-C"
    return DATA.get(data, data)


def of_corruption(corruption: str) -> str:
    return corruption.replace("_", " ")


def slug(text: str) -> str:
    """A name as part of a file's name or an element's id.

    >>> slug("svhn->mnist"), slug("CIFAR-10-C, online")
    ('svhn-to-mnist', 'cifar-10-c-online')
    """
    kept = "".join(letter if letter.isalnum() else "-" for letter in text.lower().replace("->", "-to-"))
    return "-".join(part for part in kept.split("-") if part)


def quantity(number: int | float, word: str) -> str:
    """A number with its noun.

    >>> quantity(1, "shift"), quantity(2000, "image"), quantity(0.5, "epoch")
    ('1 shift', '2,000 images', '0.5 epochs')
    """
    return f"{int(number) if number == int(number) else number:,} {word}" + ("" if number == 1 else "s")
