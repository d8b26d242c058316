"""Values that many jobs read: each machine gets them once, not once with every job."""

from dataclasses import dataclass
from typing import Any, Protocol


class Held(Protocol):
    def get(self) -> Any:
        """The value, where the job runs. Arrays of a cluster cannot be written to: jobs of a machine share them."""


@dataclass(frozen=True)
class LocalValue:
    """A value of this process."""

    value: Any

    def get(self) -> Any:
        return self.value


@dataclass(frozen=True)
class RayValue:
    """A value in Ray's object store."""

    reference: Any

    def get(self) -> Any:
        import ray  # pyrefly: ignore[missing-import]

        return ray.get(self.reference)
