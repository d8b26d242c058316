"""The training curves of a run: as a picture, and for TensorBoard where that is installed."""

from functools import cache
from pathlib import Path
from typing import Any

from bacs.errors import RunError


def draw_curves(logs: dict[int, list[dict[str, Any]]], file: Path) -> None:
    """Draws loss, accuracy and learning rate of every member by epoch into `file`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RunError("training curves need matplotlib: pip install 'bacs[report]'") from error
    figure = Figure(figsize=(12, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (name, label) in enumerate(
        [("loss", "training loss"), ("accuracy", "training accuracy"), ("learning_rate", "learning rate")]
    ):
        axes = figure.add_subplot(1, 3, place + 1)
        for index, log in sorted(logs.items()):
            axes.plot([line["epoch"] for line in log], [line[name] for line in log], label=f"member {index}")
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
        if name == "learning_rate":
            axes.set_yscale("log")
            axes.legend(frameon=False, fontsize="small")
    figure.savefig(file, dpi=120)


def check_tensorboard() -> None:
    """Raises unless TensorBoard's writer can be imported."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError as error:
        raise RunError(f"tensorboard needs a package that is missing ({error}): pip install tensorboard") from error


def write_tensorboard(out: Path, index: int, line: dict[str, Any]) -> None:
    """Adds one epoch of a member to its event file."""
    writer = _event_writer(out / "tensorboard" / f"member-{index}")
    for name in ("learning_rate", "loss", "accuracy", "images_per_second"):
        writer.add_scalar(name, line[name], line["epoch"])
    writer.flush()


@cache
def _event_writer(folder: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))
