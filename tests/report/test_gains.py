"""Differences to BN Adapt: their intervals, and the figures that show them."""

import numpy as np
import pytest
from scipy import stats

from bacs.metrics import SCORES
from bacs.report import gain_figures, gains
from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.figure_style import COLOURS, inline_svg, png_file
from bacs.report.gains import paired_interval
from sweep_records import make_record, make_records

CORRUPTIONS = ("fog", "snow", "frost")


def comparison_of(records):
    (comparison,) = comparisons(records)
    return comparison


@pytest.fixture(scope="module")
def comparison():
    return comparison_of(make_records(corruptions=CORRUPTIONS, severities=(1, 5)))


def gain_of(comparison, label, name):
    kinds = {entry.label: entry.kind for entry in comparison.entries}
    (found,) = [gain for gain in gains.gains(comparison, kinds[label], name) if gain.entry.label == label]
    return found


@pytest.mark.parametrize("count", [2, 3, 15])
def test_the_interval_is_that_of_the_paired_t_test(count):
    random = np.random.default_rng(count)
    first, second = random.normal(0.5, 0.1, (2, count))
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    mean, low, high = paired_interval(first, second)
    assert mean == pytest.approx(np.mean(first) - np.mean(second))
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_the_interval_holds_the_mean_as_often_as_it_says():
    random = np.random.default_rng(0)
    held = [
        low < 1 < high for _, low, high in (paired_interval(random.normal(1, 1, 5), np.zeros(5)) for _ in range(2000))
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)  # four deviations of the share


def test_an_infinite_score_has_no_interval():
    assert np.isnan(paired_interval([1.0, np.inf], [1.0, 2.0])).all()


def test_each_corruption_counts_once_however_many_severities_it_has(comparison):
    gain = gain_of(comparison, "BACS", "nll")
    bacs, bn = (next(e for e in comparison.of_kind("ensemble") if e.method == m) for m in ("bacs", "bn"))
    by_corruption = [
        [np.mean([entry.score(f"cifar10-c/{name}/{severity}", "nll") for severity in (1, 5)]) for name in CORRUPTIONS]
        for entry in (bacs, bn)
    ]
    expected = stats.ttest_rel(*by_corruption).confidence_interval(0.95)
    assert (gain.low, gain.high) == pytest.approx((expected.low, expected.high))
    assert gain.mean == pytest.approx(bacs.mean(comparison.common, "nll") - bn.mean(comparison.common, "nll"))


def test_rows_are_compared_with_bn_of_their_kind_or_else_vanilla_or_else_the_first(comparison):
    assert gains.baseline(comparison.of_kind("ensemble")).label == "Ensemble BN Adapt"
    assert [entry.method for entry in gains.without_baseline(comparison.of_kind("single"))] == [
        "vanilla",
        "tent",
        "bacs",
        "bacs-no-posterior",
    ]
    for methods, expected in ((("bacs", "vanilla"), "vanilla"), (("bacs", "tent"), "tent")):
        entries = comparison_of(make_records(corruptions=CORRUPTIONS, methods=methods)).of_kind("single")
        assert gains.baseline(entries).method == expected


def test_the_figure_shows_the_numbers_of_its_table(comparison):
    table = gains.gains_table(comparison)
    assert [line.label for line in table.lines[:4]] == ["Vanilla", "TENT", "BACS (MAP)", "BACS (MAP) - posterior"]
    for place, name in enumerate(SCORES):
        (axes,) = gain_figures.gains_plot(comparison, name).axes
        drawn = {line.get_gid(): line for line in axes.lines if line.get_marker() == "None" and line.get_gid()}
        row = next(line for line in table.lines if line.label == "BACS")
        mean, low, high = (cell.value for cell in row.cells[3 * place : 3 * place + 3])
        # Of a method the ensemble comes last.
        assert list(drawn["method-bacs"].get_xdata()) == pytest.approx([low, high])
        points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
        assert points[-1] == pytest.approx(mean)


def test_rows_that_adapt_set_the_scale_and_vanilla_is_an_arrow_with_its_number(comparison):
    (axes,) = gain_figures.gains_plot(comparison, "accuracy").axes
    least, most = axes.get_xlim()
    assert least < 0 < most
    ends = [
        100 * end
        for kind in ("single", "ensemble")
        for g in gains.gains(comparison, kind, "accuracy")
        if g.entry.method != "vanilla"
        for end in g[1:]
    ]
    assert most - least < 1.6 * (max(*ends, 0) - min(*ends, 0))  # margins, and room for the number
    (single, ensemble) = [text for text in axes.texts if text.get_gid() == "method-vanilla"]
    vanilla = 100 * gain_of(comparison, "Vanilla Ensemble", "accuracy").mean
    assert ensemble.get_text().strip() == f"◂ −{abs(vanilla):.2f}"
    assert single.xy[0] == least


@pytest.mark.parametrize(("name", "better"), [("accuracy", "in points, better →"), ("nll", "← better")])
def test_the_axis_says_which_side_is_better_and_it_is_shaded(comparison, name, better):
    for figure in (gain_figures.gains_plot(comparison, name), gain_figures.corruption_plot(comparison, "single", name)):
        (axes,) = figure.axes
        assert better in axes.get_xlabel()
        assert f"{SCORES[name].label} minus BN Adapt" in axes.get_xlabel()
        (shaded,) = axes.patches
        side = axes.get_xlim()[1 if name == "accuracy" else 0]
        assert sorted((shaded.get_x(), shaded.get_x() + shaded.get_width())) == pytest.approx(sorted((0, side)))


def test_points_by_corruption_are_means_over_severities(comparison):
    (axes,) = gain_figures.corruption_plot(comparison, "ensemble", "accuracy").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["snow", "frost", "fog"]
    (line,) = [line for line in axes.lines if line.get_label() == "BACS"]
    entries = {entry.method: entry for entry in comparison.of_kind("ensemble")}
    levels = {
        method: [
            100 * np.mean([entries[method].score(f"cifar10-c/{name}/{s}", "accuracy") for s in (1, 5)])
            for name in ("snow", "frost", "fog")
        ]
        for method in ("bacs", "bn", "vanilla")
    }
    assert list(line.get_xdata()) == pytest.approx(np.subtract(levels["bacs"], levels["bn"]))
    assert line.get_markerfacecolor() == COLOURS["bacs"]
    beside = [text.get_text() for text in axes.texts]
    assert beside == ["BN Adapt", *(f"{value:.2f}" for value in levels["bn"])]
    arrows = [each for each in axes.lines if each.get_marker() == "<" and len(each.get_xdata())]
    assert [each.get_gid() for each in arrows] == ["method-vanilla"]
    assert set(arrows[0].get_xdata()) == {axes.get_xlim()[0]}
    assert len(arrows[0].get_xdata()) == 3


def test_further_rows_of_a_method_have_smaller_points():
    records = make_records(corruptions=CORRUPTIONS) + make_records(corruptions=CORRUPTIONS, methods=("bacs",), epochs=5)
    (axes,) = gain_figures.corruption_plot(comparison_of(records), "ensemble", "nll").axes
    sizes = {line.get_label(): line.get_markersize() for line in axes.lines if line.get_gid() == "method-bacs"}
    assert sizes["BACS (5 epochs)"] < 0.8 * sizes["BACS (1 epoch)"]


def test_the_names_of_rows_and_axes_lie_within_the_figure():
    records = make_records() + make_records(methods=("bacs", "bacs-no-posterior"), epochs=5)
    comparison = comparison_of(records)
    for figure in (
        gain_figures.gains_plot(comparison, "accuracy"),
        gain_figures.corruption_plot(comparison, "single", "nll"),
    ):
        figure.draw_without_rendering()
        (axes,) = figure.axes
        for text in (axes.xaxis.label, *axes.get_yticklabels(), *axes.texts):
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0, text.get_text()
            assert box.x1 <= figure.bbox.x1, text.get_text()


def test_an_infinite_nll_has_no_place_but_spoils_nothing():
    scores = {"accuracy": 0.5, "nll": float("inf"), "brier": 0.5, "ece": 0.1}
    shifts = ("cifar10-c/fog/1", "cifar10-c/fog/5", "cifar10-c/snow/1", "cifar10-c/snow/5")
    records = [make_record(shift, "tent", ensemble=scores) for shift in shifts]
    comparison = comparison_of(records + [make_record(shift, method) for shift in shifts for method in ("bn", "bacs")])
    for figure in (
        gain_figures.gains_plot(comparison, "nll"),
        gain_figures.corruption_plot(comparison, "ensemble", "nll"),
    ):
        assert png_file(figure).startswith(b"\x89PNG")
    (row,) = [line for line in gains.gains_table(comparison).lines if line.label == "Ensemble TENT"]
    assert [cell.text for cell in row.cells[3:6]] == ["–"] * 3


def test_there_are_no_figures_where_there_is_nothing_to_compare_or_one_shift_only():
    for records in (
        make_records(corruptions=CORRUPTIONS, methods=("bacs",)),
        [make_record("svhn->mnist", method) for method in ("bn", "bacs")],
    ):
        pictures = chapter(comparison_of(records)).pictures
        assert [
            picture.name for picture in pictures if "gains" in picture.name or "by-corruption" in picture.name
        ] == []


def test_other_shifts_than_corruptions_have_intervals_too():
    records = [make_record(shift, method) for shift in ("one", "two") for method in ("bn", "bacs")]
    for record in records:
        record["data"] = "mine"
    made = chapter(comparison_of(records))
    (part,) = [part for part in made.parts if part.heading.startswith("Gains over ")]
    assert len(part.pictures) == len(SCORES)
    assert "Mean difference on 2 shifts" in part.note


def test_the_note_says_what_the_interval_is(comparison):
    (part,) = [part for part in chapter(comparison).parts if part.heading.startswith("Gains over ")]
    assert "on 3 corruptions, paired, with the 95 % interval of Student's t" in part.note


def test_a_dollar_sign_in_a_label_is_no_formula():
    records = [make_record(shift, m) for m in ("bn", "a$b^$") for shift in ("cifar10-c/fog/5", "cifar10-c/snow/5")]
    comparison = comparison_of(records)
    assert "a$b^$" in inline_svg(gain_figures.gains_plot(comparison, "nll"), "gains", "Gains")
    assert "a$b^$" in inline_svg(gain_figures.corruption_plot(comparison, "single", "nll"), "points", "Points")
