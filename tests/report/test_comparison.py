"""From records to rows: what belongs together, what may be averaged."""

import json

import numpy as np
import pytest

from bacs.errors import RunError
from bacs.report.comparison import comparisons
from bacs.report.names import of_data
from bacs.report.records import read
from sweep_records import make_failed, make_record, make_records, write_sweep


def test_there_is_one_comparison_for_each_data_set_and_protocol():
    records = [
        make_record("svhn->mnist"),
        make_record("cifar10-c/fog/5", protocol="online"),
        make_record("cifar10-c/fog/5"),
        make_record("cifar10-c/fog/5@published"),
        make_record("cifar10/clean", data="cifar10/clean"),
    ]
    found = [(each.data, each.protocol, each.published) for each in comparisons(records)]
    assert found == [
        ("cifar10", "offline", False),
        ("cifar10-c", "offline", False),
        ("cifar10-c", "online", False),
        ("cifar10-c", "offline", True),
        ("svhn->mnist", "offline", False),
    ]
    assert of_data("svhn->mnist") == "SVHN → MNIST"


def test_rows_stand_in_the_papers_order_with_its_labels():
    records = make_records(corruptions=["fog"]) + make_records(corruptions=["fog"], methods=("bacs", "tent"), epochs=5)
    (comparison,) = comparisons(records)
    assert [entry.label for entry in comparison.entries] == [
        "Vanilla",
        "BN Adapt",
        "TENT (1 epoch)",
        "TENT (5 epochs)",
        "BACS (MAP) (1 epoch)",
        "BACS (MAP) (5 epochs)",
        "BACS (MAP) - posterior (1 epoch)",
        "Vanilla Ensemble",
        "Ensemble BN Adapt",
        "Ensemble TENT (1 epoch)",
        "Ensemble TENT (5 epochs)",
        "BACS (1 epoch)",
        "BACS (5 epochs)",
        "BACS - posterior (1 epoch)",
    ]


def test_one_number_of_epochs_is_not_worth_a_mention():
    (comparison,) = comparisons(make_records(corruptions=["fog"], epochs=10))
    assert not any("epoch" in entry.label for entry in comparison.entries)


def test_settings_that_a_method_uses_make_rows_and_labels_of_their_own():
    settings = make_record()["settings"]
    records = [
        make_record("cifar10-c/fog/5", method, settings=settings | {"learning_rate": rate, "posterior_weight": weight})
        for method in ("vanilla", "bn", "tent", "bacs")
        for rate, weight in ((0.001, 1e-4), (0.01, 1e-3), (0.01, 1e-5))
    ]
    (comparison,) = comparisons(records)
    assert [entry.label for entry in comparison.of_kind("ensemble")] == [
        "Vanilla Ensemble",
        "Ensemble BN Adapt",
        "Ensemble TENT (learning rate 0.001)",
        "Ensemble TENT (learning rate 0.01)",
        "BACS (learning rate 0.001, posterior weight 0.0001)",
        "BACS (learning rate 0.01, posterior weight 1e-05)",
        "BACS (learning rate 0.01, posterior weight 0.001)",
    ]


def test_rows_that_each_have_an_objective_of_their_own_are_called_by_it():
    """Rates and weights were tuned for it, and would make labels of a line."""
    settings = make_record()["settings"]
    other = {"objective": "information_maximisation", "learning_rate": 0.01, "objective_temperature": 5.0}
    records = [
        make_record("cifar10-c/fog/5", "bacs", epochs=epochs, settings=settings | own)
        for own in ({}, other)
        for epochs in (1, 5)
    ]
    (comparison,) = comparisons(records)
    assert [entry.label for entry in comparison.of_kind("ensemble")] == [
        "BACS (1 epoch, entropy)",
        "BACS (1 epoch, information maximisation)",
        "BACS (5 epochs, entropy)",
        "BACS (5 epochs, information maximisation)",
    ]
    third = make_record("cifar10-c/fog/5", "bacs", settings=settings | other | {"learning_rate": 0.03})
    (comparison,) = comparisons([*records, third])
    assert all("learning rate" in entry.label for entry in comparison.of_kind("ensemble"))


def test_what_is_left_out_or_switched_off_is_not_in_a_label():
    settings = make_record()["settings"]
    records = [
        make_record("cifar10-c/fog/5", "bacs", protocol="online", settings=settings | own)
        for own in ({}, {"temperature": 2.0}, {"guard": True}, {"reset_every": 1}, {"reset_every": 1000})
    ]
    (comparison,) = comparisons(records)
    assert [entry.label for entry in comparison.of_kind("ensemble")] == [
        "BACS",
        "BACS (temperature 2)",
        "BACS (reset every 1 step)",
        "BACS (reset every 1,000 steps)",
        "BACS (guard)",
    ]


def test_vanilla_stands_in_both_protocols_bn_does_not():
    offline = make_records(corruptions=["fog", "snow"])
    online = make_records(corruptions=["fog", "snow"], methods=("tent", "bacs"), protocol="online")
    both = comparisons(offline + online)
    assert [entry.method for entry in both[1].of_kind("single")] == ["vanilla", "tent", "bacs"]
    assert both[1].entries[0].mean(both[1].common, "nll") == both[0].entries[0].mean(both[0].common, "nll")


def test_two_seeds_in_one_folder_are_refused():
    records = [make_record("cifar10-c/fog/5", "tent", seed=seed) for seed in (0, 1)]
    with pytest.raises(RunError, match="records of a folder must have one seed, got 0 and 1"):
        comparisons(records)


def test_means_are_over_the_shifts_that_every_row_has():
    records = make_records(corruptions=["fog", "snow", "frost"], methods=("bn", "bacs"))
    records = [r for r in records if (r["method"], r["corruption"]) != ("bacs", "snow")]
    (comparison,) = comparisons(records)
    assert [shift.corruption for shift in comparison.shifts] == ["snow", "frost", "fog"]
    assert [shift.corruption for shift in comparison.common] == ["frost", "fog"]
    bn = comparison.entries[0]
    by_hand = np.mean([r["single"]["nll"] for r in records if r["method"] == "bn" and r["corruption"] != "snow"])
    assert bn.mean(comparison.common, "nll") == pytest.approx(by_hand)


def test_some_severities_are_a_comparison_of_their_own():
    records = make_records(corruptions=["fog"], severities=(1, 5), methods=("bn", "bacs"))
    records += make_records(corruptions=["fog"], severities=(1,), methods=("tent",))
    part = comparisons(records)[0].at_severities([5])
    assert [entry.method for entry in part.of_kind("single")] == ["bn", "bacs"]
    assert [shift.severity for shift in part.common] == [5]
    assert {record["severity"] for record in part.records} == {5}


def test_a_folder_is_read_with_its_failed_cells(tmp_path):
    records = [make_record(), make_failed(method="tent")]
    records[0]["ensemble"]["nll"] = "inf"
    sweep = read(write_sweep(tmp_path / "sweep", records))
    assert sweep.title == "CIFAR-10-C in small"
    assert sweep.records[0]["ensemble"]["nll"] == float("inf")
    assert [record["method"] for record in sweep.failed] == ["tent"]
    write_sweep(tmp_path / "nameless", records, title="")
    assert read(tmp_path / "nameless").title == "nameless"


def test_what_is_not_a_sweep_is_named(tmp_path):
    with pytest.raises(RunError, match=r"nothing is not the folder of a sweep: there is no such folder"):
        read(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"it has no folder records/"):
        read(tmp_path)
    (tmp_path / "records").mkdir()
    with pytest.raises(RunError, match="has no finished cell: there are no records yet"):
        read(tmp_path)
    failed = write_sweep(tmp_path / "failed", [make_failed()])
    with pytest.raises(RunError, match="all 1 failed, the first with DataError: fog.npy is missing"):
        read(failed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": None}, "method must be a text, got None"),
        ({"single": {"accuracy": 0.5}}, "is not whole: KeyError 'nll'"),
        ({"images": "many"}, "images must be a whole number from 0 on, got 'many'"),
        ({"images": 0}, "is not whole: ValueError scores need a member and an image"),
        ({"format": 2}, "what it says does not match its checksum"),
        ({"format": 3}, "has format 3, this version reads 1 and 2"),
        ({"settings": {"batch_size": 8, "learning_rate": "fast"}}, "learning_rate must be a finite number >= 0"),
        ({"windows": [{"first": 0}]}, "windows lacks 'images'"),
    ],
)
def test_a_record_that_lacks_something_is_named(tmp_path, change, message):
    folder = write_sweep(tmp_path / "sweep", [make_record() | change])
    with pytest.raises(RunError, match=message):
        read(folder)


def test_a_damaged_manifest_is_named(tmp_path):
    folder = write_sweep(tmp_path / "sweep", [make_record()])
    (folder / "sweep.json").write_text(json.dumps({"recipe": []}))
    with pytest.raises(RunError, match=r"sweep\.json is not of a sweep that this version knows"):
        read(folder)
