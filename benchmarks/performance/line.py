"""A straight line through points."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
    """y = intercept + slope x by least squares, and the share of y's variance that it explains."""

    slope: float
    intercept: float
    r_squared: float


def fit(x: Sequence[float], y: Sequence[float]) -> Line:
    slope, intercept = np.polyfit(x, y, 1)
    left_over = np.asarray(y) - (intercept + slope * np.asarray(x))
    spread = np.asarray(y) - np.mean(y)
    # Equal values lie on a line; the quotient would be 0 / 0.
    r_squared = 1 - float(left_over @ left_over) / float(spread @ spread) if spread.any() else 1.0
    return Line(float(slope), float(intercept), r_squared)
