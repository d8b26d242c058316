"""Training curves for TensorBoard, where that is installed."""

from functools import cache
from pathlib import Path
from typing import Any

from bacs.errors import RunError


def check() -> None:
    """Raises unless TensorBoard's writer can be imported."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError as error:
        raise RunError(f"tensorboard needs a package that is missing ({error}): pip install tensorboard") from error


def write(out: Path, index: int, line: dict[str, Any]) -> None:
    """Adds one epoch of a member to its event file."""
    writer = _writer(out / "tensorboard" / f"member-{index}")
    for name in ("learning_rate", "loss", "accuracy", "images_per_second"):
        writer.add_scalar(name, line[name], line["epoch"])
    writer.flush()


@cache
def _writer(folder: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))
