"""Figures of choices show what was chosen, and from what."""

import numpy as np
import pytest

from bacs.control.candidates import Candidate
from bacs.control.choose import Choice
from bacs.report.choice_figures import choice_plot


def test_a_choice_is_drawn_with_what_was_chosen(tmp_path):
    rows = tuple(Candidate(r, 0.5 + r / 4, r / 8, 0.5 + r / 5, 9 - r, 0.8) for r in (0.0, 0.25, 1.0))
    choice = Choice(0.25, True, {}, rows, ("because",), 100, False)
    figure = choice_plot(choice)
    upper, lower = figure.axes
    np.testing.assert_allclose(upper.lines[0].get_xydata(), [[0, 0.5], [0.25, 0.5625], [1, 0.75]])
    np.testing.assert_allclose(upper.lines[1].get_ydata(), [0.5, 0.55, 0.7])
    np.testing.assert_allclose(lower.lines[-1].get_ydata(), [9, 8.75, 8])
    assert upper.get_title() == "chosen: r = 0.25, and weights"
    figure.savefig(tmp_path / "choice.png")
    with pytest.raises(ValueError, match="no candidates to draw: too few"):
        choice_plot(Choice(0.0, False, {}, (), ("too few",), 1, False))
