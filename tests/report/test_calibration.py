"""Figures of calibration show the numbers they were given."""

import numpy as np

from bacs.report import calibration


def test_reliability_diagram_draws_each_method_and_the_diagonal():
    curve = {"confidence": [0.3, 0.9], "accuracy": [0.2, 0.8]}
    axes = calibration.reliability_diagram({"Batch": curve, "BACS": curve}, {"Batch": "bn", "BACS": "bacs"}).axes[0]
    assert [line.get_label() for line in axes.lines] == ["perfectly honest", "Batch", "BACS"]
    np.testing.assert_allclose(axes.lines[1].get_xydata(), [[0.3, 0.2], [0.9, 0.8]])


def test_risk_coverage_plot_draws_each_method():
    curve = {"coverage": [0.5, 1.0], "risk": [0.0, 0.25]}
    axes = calibration.risk_coverage_plot({"Ensemble TENT": curve}, {"Ensemble TENT": "tent"}).axes[0]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0.5, 0], [1, 0.25]])
