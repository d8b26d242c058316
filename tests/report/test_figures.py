"""Figures show the numbers they were given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from bacs.control.candidates import Candidate
from bacs.control.choose import Choice
from bacs.errors import RunError
from bacs.report import figures
from bacs.report.choice import choice_plot


def test_reliability_diagram_draws_each_method_and_the_diagonal():
    curve = {"confidence": [0.3, 0.9], "accuracy": [0.2, 0.8]}
    axes = figures.reliability_diagram({"Batch": curve, "BACS": curve}, {"Batch": "bn", "BACS": "bacs"}).axes[0]
    assert [line.get_label() for line in axes.lines] == ["perfectly honest", "Batch", "BACS"]
    np.testing.assert_allclose(axes.lines[1].get_xydata(), [[0.3, 0.2], [0.9, 0.8]])


def test_risk_coverage_plot_draws_each_method():
    curve = {"coverage": [0.5, 1.0], "risk": [0.0, 0.25]}
    axes = figures.risk_coverage_plot({"Ensemble TENT": curve}, {"Ensemble TENT": "tent"}).axes[0]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0.5, 0], [1, 0.25]])


def test_picture_strip_colours_captions_by_truth(tmp_path):
    pictures = np.zeros((3, 8, 8, 1), np.uint8)
    figure = figures.picture_strip({"fog": pictures}, [["a", "b", "c"]], np.array([[True, False, True]]))
    assert isinstance(figure, Figure)
    colours = [axes.xaxis.label.get_color() for axes in figure.axes]
    assert colours[0] == colours[2] != colours[1]
    figure.savefig(tmp_path / "strip.png")


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(RunError, match=r"pip install 'bacs\[report\]'"):
        figures.new_figure()


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
