"""The last predictions of a stream, from which its temperature follows without labels."""

from typing import TypedDict

import torch
from jaxtyping import Float64
from torch import Tensor

from bacs import temperature
from bacs.agreement import Reference
from bacs.errors import CheckpointError
from bacs.schema import Count, Positive

IMAGES = 512
"""How many are kept: more would change the temperature's second digit at most."""

OFTEN = 8
"""Steps after which the temperature is found anew once so many are there."""


class SavedRecent(TypedDict):
    temperature: Positive
    steps: Count


class Recent:
    """The members' probabilities of the last images at temperature 1, and the temperature that they call for."""

    def __init__(self) -> None:
        self.rows: Float64[Tensor, "members images classes"] | None = None
        self.temperature = 1.0
        self.steps = 0

    def add(self, rows: list[Float64[Tensor, "batch classes"]], reference: Reference | None) -> None:
        """Takes in one more batch."""
        arrived = torch.stack(rows)
        full = self.rows is not None and self.rows.shape[1] >= IMAGES
        self.rows = arrived if self.rows is None else torch.cat([self.rows, arrived], dim=1)[:, -IMAGES:]
        if not full or self.steps % OFTEN == 0:
            self.temperature = temperature.by_agreement(self.rows, reference)
        self.steps += 1

    def pack(self) -> dict[str, Tensor]:
        return {} if self.rows is None else {"rows": self.rows}

    def describe(self) -> SavedRecent:
        return {"temperature": self.temperature, "steps": self.steps}

    def unpack(self, about: SavedRecent, tensors: dict[str, Tensor], *, members: int, classes: int | None) -> None:
        """Takes over what was packed and described; raises for rows that are not of so many members and classes."""
        rows = tensors.get("rows")
        if rows is not None:
            fits = rows.ndim == 3 and rows.dtype == torch.float64 and len(rows) == members and rows.numel() > 0
            if not fits or classes not in (None, rows.shape[2]):
                raise CheckpointError(
                    f"the stream's last predictions must be float64 [{members} members, images, classes], "
                    f"got {rows.dtype} {list(rows.shape)}"
                )
        if unknown := tensors.keys() - {"rows"}:
            raise CheckpointError(f"the stream's last predictions have no {unknown.pop()!r}")
        self.temperature, self.steps = float(about["temperature"]), int(about["steps"])
        self.rows = rows
