"""The training curves of a run as a picture."""

from pathlib import Path
from typing import Any

from bacs.errors import RunError


def plot(logs: dict[int, list[dict[str, Any]]], file: Path) -> None:
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
