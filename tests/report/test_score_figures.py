"""Figures of scores show the numbers of the records, in light and dark."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from bacs.corruptions import TEST
from bacs.metrics import SCORES
from bacs.report import figure_style, gain_figures, score_figures
from bacs.report.comparison import comparisons
from bacs.report.figure_style import inline_svg, png_file, svg_file
from sweep_records import make_record, make_records


@pytest.fixture(scope="module")
def comparison():
    records = make_records(corruptions=("fog", "snow", "frost"), severities=(1, 5))
    return comparisons(records)[0]


def test_boxes_reach_from_the_least_to_the_most_with_median_line_and_white_mean(comparison):
    panels = score_figures.severity_boxes(comparison, "single").axes
    assert len(panels) == len(SCORES)
    nll = panels[1]
    vanilla = comparison.of_kind("single")[0]
    values = sorted(vanilla.score(f"cifar10-c/{name}/1", "nll") for name in ("fog", "snow", "frost"))
    lines = [line.get_ydata() for line in nll.lines]
    drawn = np.concatenate(lines[:10])  # of the first boxes: whiskers, caps, medians, means
    assert values[0] in drawn
    assert values[2] in drawn
    means = [line for line in nll.lines if line.get_marker() == "o"]
    assert len(means) == 5 * 2
    assert means[0].get_markerfacecolor() == "white"
    assert means[0].get_ydata()[0] == pytest.approx(np.mean(values))
    box = nll.patches[0].get_path().get_extents()
    assert (box.y0, box.y1) == pytest.approx(tuple(np.quantile(values, (0.25, 0.75))))


def test_whiskers_reach_a_corruption_far_off():
    def scores(nll):
        return {"accuracy": 0.5, "nll": nll, "brier": 0.5, "ece": 0.1}

    values = dict(zip(TEST, [1.0, 1.1, 1.2, 1.3, 1.4, 9.0, 0.01], strict=False))
    records = [
        make_record(f"cifar10-c/{name}/{severity}", ensemble=scores(nll))
        for name, nll in values.items()
        for severity in (1, 5)
    ]
    (comparison,) = comparisons(records)
    nll = score_figures.severity_boxes(comparison, "ensemble").axes[1]
    ends = {float(y) for line in nll.lines for y in line.get_ydata()}
    assert {0.01, 9.0} <= ends


def test_a_point_for_each_row_filled_for_ensembles(comparison):
    every, adapting = score_figures.accuracy_against_nll(comparison).axes
    assert len(every.lines) == 10
    assert len(adapting.lines) == 8
    point = every.lines[8]
    entry = comparison.entries[8]
    assert point.get_label() == "BACS"
    assert point.get_xydata()[0] == pytest.approx(
        [100 * entry.mean(comparison.common, "accuracy"), entry.mean(comparison.common, "nll")]
    )
    assert point.get_markerfacecolor() == figure_style.COLOURS["bacs"]
    assert every.lines[3].get_markerfacecolor() == "none"


def test_an_infinite_nll_has_no_place_but_spoils_nothing():
    scores = {"accuracy": 0.5, "nll": float("inf"), "brier": 0.5, "ece": 0.1}
    shifts = ("cifar10-c/fog/1", "cifar10-c/fog/5", "cifar10-c/snow/1", "cifar10-c/snow/5")
    records = [make_record(shift, "tent", ensemble=scores) for shift in shifts]
    (comparison,) = comparisons(records + [make_record(shift, "bacs") for shift in shifts])
    for figure in (
        score_figures.severity_boxes(comparison, "ensemble"),
        score_figures.accuracy_against_nll(comparison),
    ):
        assert png_file(figure).startswith(b"\x89PNG")


def test_svg_takes_the_ink_of_its_surroundings_and_is_the_same_each_time(comparison):
    texts = [
        inline_svg(gain_figures.corruption_plot(comparison, "single", "nll"), "points", "Points <& more>")
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
    assert "currentColor" in texts[0]
    assert figure_style.INK not in texts[0]
    root = ElementTree.fromstring(texts[0])
    assert root.get("role") == "img"
    assert root.find("{http://www.w3.org/2000/svg}title").text == "Points <& more>"
    assert "width" not in root.attrib
    assert all(name.startswith("points-") for name in re.findall(r'\bid="([^"]+)"', texts[0]))
    # Words stay words: they can be searched, selected and read aloud.
    assert "frost" in "".join(root.itertext())


def test_an_svg_file_carries_light_and_dark_with_it(comparison):
    data = svg_file(inline_svg(score_figures.accuracy_against_nll(comparison), "points", "Points"), (9.0, 4.4))
    root = ElementTree.fromstring(data)
    assert root.get("width") == "648pt"
    assert "prefers-color-scheme:dark" in root.find("{http://www.w3.org/2000/svg}style").text


@pytest.mark.parametrize("most", [2, 4, 5])
def test_no_entry_of_a_legend_stands_alone_in_the_last_row(most):
    for entries in range(2, 40):
        columns = figure_style.legend_columns(entries, most)
        assert 1 <= columns <= most
        assert columns == 1 or entries % columns != 1, f"{entries} entries in {columns} columns"
    assert figure_style.legend_columns(6, most=5) == 3


def test_rows_of_a_legend_are_as_matplotlib_fills_them(comparison):
    figure = score_figures.severity_boxes(comparison, "ensemble")
    figure.draw_without_rendering()
    heights = [round(text.get_window_extent().y0) for text in figure.legends[0].get_texts()]
    assert sorted(heights.count(height) for height in set(heights)) == [2, 3]


def test_whatever_is_of_one_method_says_so_in_svg(comparison):
    every = [
        score_figures.severity_boxes(comparison, "ensemble"),
        score_figures.accuracy_against_nll(comparison),
        gain_figures.gains_plot(comparison, "nll"),
        gain_figures.corruption_plot(comparison, "ensemble", "nll"),
    ]
    for figure in every:
        root = ElementTree.fromstring(inline_svg(figure, "figure", "Figure"))
        found = [(element.get("data-method"), element) for element in root.iter() if element.get("data-method")]
        tent = "".join("".join(element.itertext()) for method, element in found if method == "tent")
        assert "TENT" in tent  # its name in the legend or beside the axis
        assert "BACS" not in tent
        assert {"vanilla", "tent", "bacs", "bacs-no-posterior"} <= {method for method, _ in found}
        # Nothing in the colour of a method lies outside.
        for method, paint in figure_style.COLOURS.items():
            whole = ElementTree.tostring(root, encoding="unicode").count(paint)
            own = sum(
                ElementTree.tostring(element, encoding="unicode").count(paint)
                for name, element in found
                if name == method
            )
            assert own == whole, method
