"""A cell: one method under one protocol on one shift, or on several as one stream; it is run, stored and resumed."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from bacs.data import World
from bacs.methods.catalogue import METHODS

STRUNG = ("continual", "gradual")
"""Protocols that string all corruptions of a data set together."""
STREAMED = (*STRUNG, "world")
"""Protocols of one stream without a reset."""


@dataclass(frozen=True)
class Cell:
    """All that a record's scores follow from, apart from the run. `settings` has only what the method uses.

    A cell of several shifts has their names in `sequence`, and `shift` names the whole. The images of a world are made
    on their way; `sequence` then has the names of its segments.
    """

    shift: str
    method: str
    protocol: str
    epochs: int | float
    settings: dict[str, Any]
    seed: int = 0
    limit: int | None = None
    tag: str = ""  # tells cells apart that differ in their settings alone
    sequence: tuple[str, ...] = ()  # shifts that follow each other without a reset
    window: int | None = None  # images of a sequence that are scored together
    world: World | None = None

    @property
    def id(self) -> str:
        """A readable name, one for each cell of a folder.

        >>> Cell("cifar10-c/fog/5", "bacs", "offline", 1, {}).id
        'cifar10-c.fog.5--bacs--offline--1'
        """
        epochs = f"{self.epochs:g}"
        return "--".join([slug(self.shift), self.method, self.protocol, epochs, *filter(None, [self.tag])])

    @property
    def shifts(self) -> tuple[str, ...]:
        """Every shift whose images are met, in their order; the clean images that a world changes."""
        if self.world is not None:
            return (f"{self.data.removesuffix('-c')}/clean",)
        return self.sequence or (self.shift,)

    @property
    def data(self) -> str:
        """The data set."""
        return self.shift.partition("/")[0] if self.world else parts((*self.sequence, self.shift)[0])[0]

    @property
    def passes(self) -> int | float:
        """How often each image meets each member."""
        return METHODS[self.method].passes(self.protocol, self.epochs)

    @property
    def cost(self) -> int | float:
        """Forward passes over the images of a shift, or of a segment, that each member needs."""
        return METHODS[self.method].cost(self.protocol, self.epochs) * max(1, len(self.sequence))

    @property
    def stream_settings(self) -> dict[str, Any]:
        """What a stream is told of the settings; its batches are made here."""
        return {name: value for name, value in self.settings.items() if name != "batch_size"}

    def identity(self) -> dict[str, Any]:
        """The fields of a record that say which cell it is of."""
        _, corruption, severity = parts(self.shift)
        if self.sequence:
            (_, _, first), corruption = parts(self.sequence[0]), None
            severity = first if all(parts(name)[2] == first for name in self.sequence) else None
        streamed: dict[str, Any] = {"sequence": list(self.sequence), "window": self.window} if self.sequence else {}
        if self.world is not None:
            streamed["world"] = json.loads(json.dumps(asdict(self.world)))
        return {
            "id": self.id,
            "shift": self.shift,
            "data": self.data,
            "corruption": corruption,
            "severity": severity,
            "method": self.method,
            "protocol": self.protocol,
            "epochs": self.epochs,
            "settings": self.settings,
            "seed": self.seed,
            "limit": self.limit,
            **streamed,
        }

    def __str__(self) -> str:
        epochs = f"{self.epochs:g} epoch{'' if self.epochs == 1 else 's'}"
        words = [self.shift, self.method, epochs if self.protocol == "offline" and self.epochs else self.protocol]
        return " ".join([*words, *filter(None, [self.tag])])


def parts(shift: str) -> tuple[str, str | None, int | None]:
    """Data set, corruption and severity of a shift's name; a natural shift, or none, has the first alone.

    >>> parts("imagenet-c/fog/5@published"), parts("cifar10/clean")
    (('imagenet-c', 'fog', 5), ('cifar10', None, None))
    """
    found = re.fullmatch(r"([^/]+-c)/([a-z_]+)/([1-5])(@published)?", shift)
    return (found[1], found[2], int(found[3])) if found else (shift.removesuffix("/clean"), None, None)


def tag_of(settings: dict[str, Any]) -> str:
    """What tells a cell apart by settings of its own.

    >>> tag_of({"reset_every": 100})
    'reset_every=100'
    """
    spelt = {name: slug(value) if isinstance(value, str) else repr(value) for name, value in settings.items()}
    return ",".join(f"{name}={value}" for name, value in spelt.items())


def slug(shift: str) -> str:
    """A shift's name as part of a file's name; what cannot be told from it, a hash tells.

    >>> slug("cifar10-c/fog/5"), slug("svhn->mnist"), slug("cifar10-c/gradual")
    ('cifar10-c.fog.5', 'svhn-to-mnist', 'cifar10-c.gradual')
    """
    plain = shift.replace("->", "-to-").replace("/", ".")
    if parts(shift)[1] is not None or re.fullmatch(
        r"[\w.-]+(->[\w.-]+|/clean|/gradual(@published)?|/world/[\w-]+)?", shift
    ):
        return plain
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', plain)[-60:]}-{hashlib.sha256(shift.encode()).hexdigest()[:8]}"
