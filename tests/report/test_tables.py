"""Tables of a report against arithmetic on the records."""

import numpy as np
import pytest

from bacs.corruptions import TEST
from bacs.metrics import ALEXNET_ERROR, SCORES
from bacs.report import calibration, corruption_tables
from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.gains import differences_table, paired_difference
from bacs.report.main_table import settings_table, summary_table
from bacs.report.tables import cells_of
from sweep_records import make_record, make_records


def comparison_of(records):
    (comparison,) = comparisons(records)
    return comparison


def line(table, label):
    (found,) = [each for each in table.lines if each.label == label]
    return found


def mean_of(records, method, kind, name):
    return np.mean([record[kind][name] for record in records if record["method"] == method])


def test_the_summary_has_means_and_the_papers_figures_beside_them():
    records = make_records()
    table = summary_table(comparison_of(records))
    assert table.title == "CIFAR-10-C, offline, mean over 15 corruptions at severity 5"
    assert [(c.group, c.heading) for c in table.columns] == [
        (group, heading) for group in ("here", "paper") for heading in ("Acc", "NLL", "Brier", "ECE")
    ]
    tent = line(table, "Ensemble TENT")
    assert tent.cells[0].value == pytest.approx(100 * mean_of(records, "tent", "ensemble", "accuracy"))
    assert tent.cells[1].text == f"{mean_of(records, 'tent', 'ensemble', 'nll'):.4f}"
    assert [cell.text for cell in tent.cells[4:]] == ["87.28", "0.4351", "0.1867", "0.02868"]
    assert [cell.text for cell in line(table, "BACS (MAP) - posterior").cells[4:]] == ["–"] * 4


def test_the_best_of_each_column_is_marked_also_among_the_papers():
    table = summary_table(comparison_of(make_records()))
    best = [[each.label for each in table.lines if each.cells[index].best] for index in range(8)]
    assert best[:2] == [["BACS"], ["BACS"]]
    # As the paper prints them in bold.
    assert best[4:] == [["BACS"], ["BACS"], ["BACS"], ["Ensemble TENT"]]


def test_equal_figures_are_equally_bold_and_gaps_never():
    cells = cells_of(SCORES["nll"], [0.50001, 0.50002, float("nan"), float("inf")])
    assert [(cell.text, cell.best) for cell in cells] == [
        ("0.5000", True),
        ("0.5000", True),
        ("–", False),
        ("∞", False),
    ]
    assert [cell.best for cell in cells_of(SCORES["accuracy"], [0.1, 0.9])] == [False, True]
    assert [cell.best for cell in cells_of(SCORES["accuracy"], [0.9])] == [False]


def test_notes_say_what_is_not_as_in_the_paper():
    settings = make_record()["settings"] | {"learning_rate": 0.01, "batch_size": 64, "objective_temperature": 3.0}
    records = make_records(methods=("vanilla", "bn", "tent")) + make_records(methods=("bacs",), settings=settings)
    notes = " ".join(summary_table(comparison_of(records)).notes)
    assert "2,000 images per shift; 3 members; seed 0" in notes
    assert "Table 1 of Zhou & Levine 2021" in notes
    assert "10 members (here 3)" in notes
    assert "10,000 images per shift (here 2,000)" in notes
    assert "the published files (here corrupted anew)" in notes
    assert "batch size 128 (here 64) for BACS; learning rate 0.001 (here 0.01) for BACS" in notes
    assert "objective temperature 1 (here 3) for BACS" in notes
    assert "Rows of the paper that were not run: bacs (single, 5 epochs), tent (single, 5 epochs)." in notes


def test_the_papers_figures_stay_away_from_other_objectives():
    records = make_records()
    variant = [
        record | {"settings": record["settings"] | {"objective": "information_maximisation"}}
        for record in records
        if record["method"] == "bacs"
    ]
    (comparison,) = comparisons(records + variant)
    table = summary_table(comparison)
    beside = {line.label: [cell.text for cell in line.cells[4:]] for line in table.lines}
    assert beside["BACS (entropy)"][0] == "87.77"
    assert beside["BACS (information maximisation)"] == ["–"] * 4


def test_the_papers_figures_stay_away_from_other_shifts():
    table = summary_table(comparison_of(make_records(corruptions=TEST[:14])))
    assert {column.group for column in table.columns} == {""}
    assert "paper" not in " ".join(table.notes)


def test_rows_that_lack_shifts_are_named_and_compared_on_common_ones():
    records = [r for r in make_records() if r["method"] != "bacs" or r["corruption"] not in ("fog", "snow")]
    table = summary_table(comparison_of(records))
    assert table.title.startswith("CIFAR-10-C, offline, mean over 13 corruptions")
    (note,) = [note for note in table.notes if "lacks" in note]
    assert note == (
        "Means are over the 13 of 15 shifts that every row has. BACS lacks cifar10-c/snow/5, cifar10-c/fog/5."
    )
    common = [r for r in records if r["corruption"] not in ("fog", "snow")]
    value = line(table, "Ensemble BN Adapt").cells[1].value
    assert value == pytest.approx(mean_of(common, "bn", "ensemble", "nll"))
    assert {column.group for column in table.columns} == {""}


def test_without_a_common_shift_there_are_no_means():
    records = [make_record("cifar10-c/fog/5", "bn"), make_record("cifar10-c/snow/5", "bacs")]
    comparison = comparison_of(records)
    table = summary_table(comparison)
    assert {cell.text for each in table.lines for cell in each.cells} == {"–"}
    assert any(note.startswith("No shift has been finished for every row") for note in table.notes)
    assert differences_table(comparison) is None
    by_corruption = corruption_tables.corruption_tables(comparison)[3]
    assert [cell.text == "–" for cell in line(by_corruption, "fog").cells] == [False, True]
    assert chapter(comparison).pictures == []


def test_mixed_images_and_runs_are_said():
    records = [make_record(method="bn"), make_record(method="bacs", images=500, run={"sha256": "cd" * 32})]
    note = summary_table(comparison_of(records)).notes[0]
    assert "500–2,000 images per shift" in note
    assert "2 different runs" in note
    assert "Rows differ in the number of images of the same shift." in note


def test_one_shift_says_how_well_an_accuracy_is_known():
    scores = {"accuracy": 0.9, "nll": 1.0, "brier": 0.2, "ece": 0.1}
    (note,) = [
        note
        for note in summary_table(comparison_of([make_record("svhn->mnist", images=900, ensemble=scores)])).notes
        if "standard error" in note
    ]
    assert "90.0 % is known to ± 1.0 points" in note  # sqrt(0.9 * 0.1 / 900) = 0.01


def test_paired_differences_by_hand():
    mean, error = paired_difference([3.0, 5.0, 10.0], [1.0, 2.0, 3.0])  # 2, 3, 7: variance 7
    assert mean == pytest.approx(4)
    assert error == pytest.approx((7 / 3) ** 0.5)
    assert np.isnan(paired_difference([1.0, np.inf], [1.0, np.inf])).all()


def test_differences_are_bacs_minus_the_others_by_kind():
    records = make_records()
    table = differences_table(comparison_of(records))
    assert [each.label for each in table.lines[:4]] == ["Vanilla", "BN Adapt", "TENT", "BACS (MAP) - posterior"]
    bn = line(table, "Ensemble BN Adapt")
    gains = [
        100 * (a["ensemble"]["accuracy"] - b["ensemble"]["accuracy"])
        for a in records
        for b in records
        if (a["method"], b["method"]) == ("bacs", "bn") and a["shift"] == b["shift"]
    ]
    assert len(gains) == 15
    error = np.std(gains, ddof=1) / 15**0.5
    assert bn.cells[0].text == f"+{np.mean(gains):.2f} ± {error:.2f}"
    assert error > 0.01
    assert bn.cells[1].text.startswith("−")
    assert bn.cells[4].text == "15/15"
    assert differences_table(comparison_of(make_records(methods=("bn", "tent")))) is None


def test_by_corruption_tables_have_every_cell():
    records = make_records(severities=(3, 5))
    tables = corruption_tables.corruption_tables(comparison_of(records))
    assert len(tables) == 4
    table = tables[1]
    assert table.title == (
        "CIFAR-10-C, offline: NLL by corruption, single models, mean over severities 3 and 5; lower is better"
    )
    assert len(table.lines) == 16
    fog = [r for r in records if r["corruption"] == "fog"]
    assert line(table, "fog").cells[3].value == pytest.approx(mean_of(fog, "bacs", "single", "nll"))
    assert line(table, "mean").cells[3].value == pytest.approx(mean_of(records, "bacs", "single", "nll"))


def test_by_severity_and_its_spread():
    records = make_records(severities=(1, 3, 5))
    comparison = comparison_of(records)
    worst = [r for r in records if r["severity"] == 5]
    table = corruption_tables.severity_table(comparison)
    assert line(table, "BACS").cells[2].value == pytest.approx(100 * mean_of(worst, "bacs", "ensemble", "accuracy"))
    nll = sorted(r["ensemble"]["nll"] for r in worst if r["method"] == "bacs")
    found = line(corruption_tables.spread_tables(comparison)[1], "5: BACS")
    # 15 values: the quartiles are the 4th/5th and 11th/12th averaged, the median the 8th.
    by_hand = [nll[0], (nll[3] + nll[4]) / 2, nll[7], (nll[10] + nll[11]) / 2, nll[14], np.mean(nll)]
    assert [cell.value for cell in found.cells] == pytest.approx(by_hand)
    assert corruption_tables.severity_table(comparison_of(worst)) is None


def test_all_severities_of_cifar_also_give_the_papers_table_at_the_worst():
    tables = chapter(comparison_of(make_records(severities=(4, 5)))).tables
    assert {column.group for column in tables[0].columns} == {""}
    assert tables[1].name == "cifar10-c-offline-severity-5"
    assert {column.group for column in tables[1].columns} == {"here", "paper"}


def test_uneven_severities_are_said():
    records = make_records(corruptions=["fog", "snow"], severities=(1, 5))
    records = [r for r in records if (r["corruption"], r["severity"]) != ("snow", 1)]
    notes = corruption_tables.severity_table(comparison_of(records)).notes
    assert notes == ("Severities do not have the same corruptions: 1 corruption at 1, 2 corruptions at 5.",)


def test_mce_is_there_for_all_of_imagenet_c_alone():
    records = make_records("imagenet-c", severities=(1, 2, 3, 4, 5), methods=("vanilla", "bacs"))
    table = corruption_tables.mce_table(comparison_of(records))
    ratios = []
    for corruption, alexnet in ALEXNET_ERROR.items():
        mine = [r for r in records if r["corruption"] == corruption and r["method"] == "vanilla"]
        ratios.append((1 - np.mean([r["single"]["accuracy"] for r in mine])) / alexnet)
    assert line(table, "Vanilla").cells[0].value == pytest.approx(100 * np.mean(ratios))
    assert [cell.text for cell in line(table, "BACS").cells[1:]] == ["46.78"]
    assert corruption_tables.mce_table(comparison_of(records[:-2])) is None
    assert corruption_tables.mce_table(comparison_of(make_records(severities=(1, 2, 3, 4, 5)))) is None


def test_curves_are_means_over_shifts():
    records = make_records(corruptions=["fog", "snow"], methods=("bn", "bacs"))
    comparison = comparison_of(records)
    ours = [r for r in records if r["method"] == "bacs"]
    reliability = calibration.reliability_curves(comparison)["BACS"]
    by_hand = np.mean([r["reliability"]["accuracy"] for r in ours], axis=0)
    np.testing.assert_allclose(reliability["accuracy"], by_hand)
    table = calibration.reliability_table(comparison)
    assert len(table.lines) == 20
    assert table.lines[4].cells[3].value == pytest.approx(by_hand[4])
    # The records' risk is (1 - accuracy) coverage^2; a straight line between 50 points is close to it.
    risk = calibration.risk_curves(comparison)["BACS"]
    error = np.mean([1 - r["ensemble"]["accuracy"] for r in ours])
    np.testing.assert_allclose(risk["risk"], error * np.square(risk["coverage"]), atol=1e-4)
    assert len(calibration.risk_table(comparison).lines) == 50


def test_settings_are_those_that_a_method_uses():
    table = settings_table(comparison_of(make_records(corruptions=["fog"])), "settings")
    headings = [column.heading for column in table.columns]
    beta = headings.index("posterior weight")
    assert [each.cells[beta].text for each in table.lines] == ["–", "–", "–", "0.0001", "–"]


def test_every_number_of_a_figure_is_in_a_table():
    made = chapter(comparison_of(make_records(severities=(1, 5))))
    names = {table.name.removeprefix("cifar10-c-offline") for table in [*made.tables, *made.numbers]}
    figures = {picture.name.removeprefix("cifar10-c-offline") for picture in made.pictures}
    shown_in = {
        "-accuracy-nll": {""},
        **{f"-gains-{name}": {"-gains"} for name in SCORES},
        **{
            f"-by-corruption-{kind}-{name}": {f"-by-corruption-{kind}-{name}"}
            for kind in ("single", "ensemble")
            for name in ("accuracy", "nll")
        },
        "-by-severity-single": {"-spread-accuracy", "-spread-nll", "-spread-brier", "-spread-ece"},
        "-by-severity-ensemble": {"-spread-accuracy", "-spread-nll", "-spread-brier", "-spread-ece"},
        "-reliability": {"-reliability"},
        "-risk-coverage": {"-risk-coverage"},
    }
    assert figures == shown_in.keys()
    assert all(tables <= names for tables in shown_in.values())
