"""`bacs demo`: the paper's table in small, on images that ship with the package."""

from pathlib import Path
from typing import Annotated

from bacs.cli.arguments import Flag, takes

SHIFTS = ("gaussian_noise", "motion_blur", "snow", "elastic_transform")  # noise, blur, weather, digital


def demo(
    out: Annotated[Path, takes("DIR")] = Path("bacs-demo"),
    *,
    shifts: Annotated[tuple[str, ...], takes("NAME ...")] = SHIFTS,
    verbose: Flag = False,
    json: Flag = False,
) -> int:
    """Train a small ensemble, shift its test images, and compare every method of the paper.

    Example: bacs demo --verbose

    Five small residual networks learn from 6,000 Fashion-MNIST images that come with bacs, each with a SWAG-D
    posterior. Then 2,000 test images meet some corruptions, and every method adapts to them without labels.

    Args:
        out: Folder for the trained ensemble, the sweep over shifts and its report. A second call does nothing anew.
        shifts: Corruptions at severity 5. Adaptation struggles with contrast, fog and frost: see for yourself.
        verbose: Also show the table of each shift, and of the test images as they are.
        json: Print the records as JSON instead of tables.
    """
    from bacs.cli.work.demo import run
    from bacs.corruptions import TEST, VALIDATION
    from bacs.errors import unknown_name
    from bacs.files import check_folder

    if not shifts:
        raise ValueError("shifts must name at least one corruption, got none")
    for shift in shifts:
        if shift not in (*TEST, *VALIDATION):
            raise unknown_name("shifts", shift, (*TEST, *VALIDATION))
    check_folder("out", out)
    run(out, shifts, verbose=verbose, json=json)
    return 0
