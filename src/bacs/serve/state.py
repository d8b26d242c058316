"""Where the stream is kept between two lives of the service.

The folder is what `Stream.save` writes, atomically, and `bacs.load` opens it. Beside it `serve.json` says whether the
service was frozen, which is no property of a stream.
"""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypedDict

from bacs import files
from bacs.drivers import kept
from bacs.errors import CheckpointError
from bacs.files import read_json
from bacs.methods import Stream
from bacs.schema import check

BESIDE = "serve.json"


class Beside(TypedDict):
    frozen: bool


class State:
    """A folder for the stream, or none: then nothing is kept."""

    def __init__(self, folder: Path | None, *, save_every: int) -> None:
        if save_every < 1:
            raise ValueError(f"save_every must be at least 1, got {save_every}")
        self.folder, self.save_every = folder, save_every

    def lock(self) -> AbstractContextManager[None]:
        """Sole use of the folder: two services would overwrite each other's streams."""
        return nullcontext() if self.folder is None else kept.own_folder(self.folder)

    def exists(self) -> bool:
        return self.folder is not None and kept.exists(self.folder)

    def read(self, *, model: str | None = None) -> tuple[Stream, bool]:
        """The stream where it was left, and whether it was frozen."""
        assert self.folder is not None
        found = kept.read(self.folder, model=model)
        try:
            beside = read_json(self.folder / BESIDE)
            check(beside, Beside)
            return found, beside["frozen"]
        except FileNotFoundError:
            return found, False
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.folder / BESIDE} is damaged: {error}") from error

    def write(self, stream: Stream, *, frozen: bool) -> None:
        """Keeps the stream as it stands; raises CheckpointError, and then what was kept is intact."""
        if self.folder is None:
            return
        text, file = json.dumps({"frozen": frozen}) + "\n", self.folder / BESIDE
        try:
            kept.write(self.folder, stream)
            if not file.exists() or file.read_text() != text:
                files.write(file, text.encode())
        except OSError as error:
            raise CheckpointError(f"could not save to {self.folder}: {error.strerror or error}") from error
