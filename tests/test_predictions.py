"""The table of predictions: each quantity against another formula, each format against its reader."""

import csv
import io
import json
import math
import os
import re
import resource
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from scipy.special import rel_entr
from scipy.stats import entropy as scipy_entropy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import bacs
from bacs.errors import RunError
from bacs.parameters import read, write
from bacs.posteriors import flat, swag_diag, swag_low_rank
from bacs.predictions import (
    abstain,
    abstain_for,
    effective_classes,
    entropy,
    mutual_information,
    posterior_deviations,
    predict_table,
    predictive_entropy,
    summarise,
)
from bacs.predictions.table import tabulate
from bacs.predictions.writers import check_table_file
from bacs.predictive import average, join
from small import small_member


@pytest.fixture
def members():
    """Probabilities [member, batch, classes] of three members, some of them 0."""
    drawn = np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=(3, 50))
    drawn[:, 0] = np.eye(6)[[0, 1, 2]]  # three members, each certain of another class
    return drawn


@pytest.fixture
def predictive(members):
    return average(torch.from_numpy(member) for member in members)


class TestUncertainty:
    def test_entropies_are_scipys(self, members, predictive):
        np.testing.assert_allclose(
            entropy(torch.from_numpy(members[0])), scipy_entropy(members[0], axis=-1), atol=1e-12
        )
        expected = scipy_entropy(members.mean(axis=0), axis=-1)
        np.testing.assert_allclose(predictive_entropy(predictive), expected, atol=1e-12)
        expected = scipy_entropy(members, axis=-1).mean(axis=0)
        np.testing.assert_allclose(predictive.expected_entropy, expected, atol=1e-12)

    def test_mutual_information_is_the_mean_divergence_from_the_average(self, members, predictive):
        expected = rel_entr(members, members.mean(axis=0)).sum(axis=-1).mean(axis=0)
        np.testing.assert_allclose(mutual_information(predictive), expected, atol=1e-12)
        assert float(mutual_information(predictive)[0]) == pytest.approx(math.log(3))

    def test_the_parts_add_up_to_the_whole(self, predictive):
        parts = predictive.expected_entropy + mutual_information(predictive)
        torch.testing.assert_close(predictive_entropy(predictive), parts)

    def test_one_member_disagrees_with_nobody(self, members):
        alone = average([torch.from_numpy(members[1])])
        assert mutual_information(alone).eq(0).all()

    def test_the_average_is_numpys_and_changes_no_member(self, members, predictive):
        given = [torch.from_numpy(member.copy()) for member in members]
        np.testing.assert_allclose(average(given).probabilities, members.mean(axis=0), atol=1e-15)
        assert np.array_equal(torch.stack(given), members)
        assert np.array_equal(predictive.labels, members.argmax(axis=-1))
        with pytest.raises(ValueError, match="at least one member, got none"):
            average([])

    def test_joined_batches_are_the_predictions_of_all_images(self, members, predictive):
        parts = [average(torch.from_numpy(member[part]) for member in members) for part in (slice(20), slice(20, 50))]
        for one, other in zip(join(parts), predictive, strict=True):
            assert torch.equal(one, other)

    def test_effective_classes_count_equal_shares(self):
        assert effective_classes(torch.eye(5)) == pytest.approx(5)
        assert effective_classes(torch.eye(5)[[2, 2, 2]]) == pytest.approx(1)
        assert effective_classes(torch.eye(5)[[0, 1, 0, 1]]) == pytest.approx(2)

    @pytest.mark.parametrize(("coverage", "flagged"), [(1.0, 0), (0.9, 1), (0.85, 2), (0.5, 5), (0.1, 9), (0.01, 9)])
    def test_abstaining_leaves_the_chosen_share_of_the_most_confident(self, coverage, flagged):
        confidence = np.random.default_rng(1).random(10)
        flags = abstain(confidence, coverage)
        assert flags.sum() == flagged
        assert flagged == 0 or confidence[flags].max() < confidence[~flags].min()

    def test_among_equals_the_later_abstain(self):
        assert abstain(np.full(4, 0.5), 0.5).tolist() == [False, False, True, True]

    @pytest.mark.parametrize("accuracy", [0.3, 0.6, 0.8, 0.95])
    def test_a_wished_accuracy_keeps_as_many_as_reach_it(self, accuracy):
        confidence = np.random.default_rng(2).random(50)
        kept = ~abstain_for(confidence, accuracy)
        best = max(count for count in range(51) if count == 0 or np.sort(confidence)[-count:].mean() >= accuracy)
        assert kept.sum() == best > 0
        assert best == 50 or confidence[kept].min() > confidence[~kept].max()

    def test_nobody_is_answered_for_if_nobody_is_sure_enough(self):
        assert abstain_for(np.full(4, 0.5), 0.9).all()
        assert not abstain_for(np.full(4, 0.95), 0.9).any()

    @pytest.mark.parametrize("accuracy", [0, 1, -0.1, float("nan")])
    def test_impossible_accuracies_are_named(self, accuracy):
        with pytest.raises(ValueError, match="accuracy must be above 0 and below 1"):
            abstain_for(np.zeros(3), accuracy)

    @pytest.mark.parametrize("coverage", [0, -0.1, 1.1, float("nan")])
    def test_impossible_coverages_are_named(self, coverage):
        with pytest.raises(ValueError, match="coverage must be above 0 and at most 1"):
            abstain(np.zeros(3), coverage)


class TestMoved:
    @pytest.mark.parametrize("module", [swag_diag, swag_low_rank])
    def test_draws_lie_at_about_one_deviation_and_the_mean_at_none(self, module):
        member = small_member(0, module)
        write(member.model, {n: m.float() for n, m in member.posterior.mean.items()})
        assert posterior_deviations(member, "all") < 0.01
        write(member.model, {n: d.float() for n, d in draw(member, module).items()})
        if module is swag_diag:
            assert posterior_deviations(member, "all") == pytest.approx(1, abs=0.05)
        assert 0.3 < posterior_deviations(member, "all") < 2  # few ranks: the draws of a low-rank posterior vary

    def test_three_deviations_are_three(self):
        member = small_member()
        deviation = {n: v.sqrt() for n, v in swag_diag.variance(member.posterior).items()}
        write(member.model, {n: (m + 3 * deviation[n]).float() for n, m in member.posterior.mean.items()})
        assert posterior_deviations(member, "all") == pytest.approx(3, abs=0.01)
        assert posterior_deviations(member, "norm_affine") == pytest.approx(3, abs=0.01)

    def test_what_has_no_posterior_or_adapts_nothing_has_no_distance(self):
        assert posterior_deviations(small_member(0, flat), "all") is None
        assert posterior_deviations(small_member(), None) is None


def draw(member, module):
    return module.sample(member.posterior, torch.Generator().manual_seed(0))


class TestTable:
    def test_rows_are_the_ensembles_predictions(self, ensemble, images):
        named = replace(ensemble, class_names=list("abcde"))
        table = predict_table(named, images, paths=[f"{n}.png" for n in range(40)], coverage=0.5)
        expected = named.predict(images)
        np.testing.assert_allclose(table.probabilities, expected, atol=1e-6)
        assert table.class_index.tolist() == expected.argmax(dim=1).tolist()
        assert [*table.class_name] == ["abcde"[number] for number in table.class_index]
        np.testing.assert_allclose(table.confidence, expected.max(dim=1).values, atol=1e-6)
        assert table.abstain.sum() == 20
        assert len(table) == 40
        assert (table.mutual_information > 0).any()

    def test_a_dataset_and_a_loader_of_the_users_own_give_the_same(self, ensemble, images, labels):
        adapted = bacs.adapt(ensemble, images, "bacs", statistics="accumulated")
        pairs = TensorDataset(images, labels)
        expected = predict_table(adapted, images).confidence
        for given in (pairs, DataLoader(pairs, batch_size=16)):
            np.testing.assert_allclose(predict_table(adapted, given).confidence, expected, atol=1e-6)

    def test_paths_must_be_one_an_image(self, ensemble, images):
        with pytest.raises(ValueError, match="paths must have one entry per image: 40 images, got 1"):
            predict_table(ensemble, images, paths=["a.png"])


@pytest.fixture
def table(predictive):
    paths = ["plain.png", 'comma, "quoted".png', "line\nbreak.png", "naïve ☃.png", *(f"{n}.png" for n in range(46))]
    return tabulate(predictive, paths=paths, class_names=list("abcdef"), index=np.arange(50) * 2)


READERS = {
    ".parquet": lambda path: pq.read_table(path).to_pydict(),
    ".csv": lambda path: columns_of(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""))),
    ".jsonl": lambda path: columns_of(json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]),
}


def columns_of(rows):
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]}


class TestFiles:
    @pytest.mark.parametrize("suffix", READERS)
    @pytest.mark.parametrize("probabilities", [False, True])
    def test_what_is_written_is_read_back_whole(self, tmp_path, table, suffix, probabilities):
        path = tmp_path / "deep" / f"out{suffix}"
        table.write(path, probabilities=probabilities)
        found = READERS[suffix](path)
        names = [
            *("index", "path", "class_index", "class_name", "confidence"),
            *("predictive_entropy", "expected_entropy", "mutual_information", "abstain"),
        ]
        assert list(found)[:9] == names
        assert [*found["path"]] == [*table.path]
        for name in ("index", "class_index", "confidence", "predictive_entropy", "mutual_information"):
            assert [float(value) for value in found[name]] == getattr(table, name).tolist(), name
        assert [str(value).lower() == "true" for value in found["abstain"]] == table.abstain.tolist()
        if not probabilities:
            assert len(found) == 9
        elif suffix == ".csv":
            assert [float(value) for value in found["probabilities_5"]] == table.probabilities[:, 5].tolist()
        else:
            assert found["probabilities"] == table.probabilities.tolist()
        assert os.listdir(path.parent) == [path.name]

    def test_without_names_there_are_no_such_columns(self, tmp_path, predictive):
        tabulate(predictive).write(tmp_path / "a.csv")
        header = (tmp_path / "a.csv").read_text().split("\n")[0]
        assert header == ("index,class_index,confidence,predictive_entropy,expected_entropy,mutual_information,abstain")

    def test_other_endings_and_existing_files_are_refused(self, tmp_path, table):
        with pytest.raises(ValueError, match=r"out must end in .parquet, .csv, .jsonl, got .*a\.xlsx"):
            table.write(tmp_path / "a.xlsx")
        (tmp_path / "a.csv").write_text("precious")
        with pytest.raises(ValueError, match=r"a\.csv exists: overwrite=True"):
            table.write(tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_text() == "precious"
        table.write(tmp_path / "a.csv", overwrite=True)
        assert (tmp_path / "a.csv").read_text().startswith("index,path")
        (tmp_path / "b.csv").mkdir()
        with pytest.raises(ValueError, match="is a folder"):
            table.write(tmp_path / "b.csv", overwrite=True)

    @pytest.mark.parametrize("suffix", READERS)
    def test_a_full_disk_leaves_what_was_there(self, tmp_path, table, suffix, monkeypatch):
        path = tmp_path / f"a{suffix}"
        path.write_text("precious")

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            RunError, match=r"could not write .*: No space left on device; nothing was left half-written"
        ):
            table.write(path, overwrite=True)
        assert path.read_text() == "precious"
        assert os.listdir(tmp_path) == [path.name]

    @pytest.mark.parametrize("suffix", READERS)
    def test_a_disk_that_fills_in_the_middle_leaves_nothing(self, tmp_path, suffix):
        rows = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(6), 3000))
        large = tabulate(average([rows]))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # the system's own refusal to let a file grow
        try:
            with pytest.raises(RunError, match=r"could not write .*: File too large"):
                large.write(tmp_path / f"a{suffix}", probabilities=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert os.listdir(tmp_path) == []

    def test_missing_pyarrow_is_said_before_any_work(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(RunError, match=r"pip install 'bacs\[parquet\]'"):
            check_table_file(tmp_path / "a.parquet", overwrite=False)


def predictions(*rows):
    rows = torch.tensor(rows, dtype=torch.float64)
    return average([rows])


def sure_of(*classes, width=5):
    return predictions(*torch.eye(width)[list(classes)].tolist())


class TestSummary:
    def summary(self, before, after, ensemble, method="bacs", batch_size=128):
        return summarise(ensemble, before, after, [0.1, None, 0.3], method=method, batch_size=batch_size)

    def test_it_counts_classes_before_and_after(self, ensemble):
        named = replace(ensemble, class_names=list("abcde"))
        found = self.summary(sure_of(0, 0, 1, 4), sure_of(4, 4, 1, 4), named, method="vanilla")
        assert [(row.name, row.before, row.after) for row in found.classes] == [("e", 1, 3), ("b", 1, 1), ("a", 2, 0)]
        assert found.before.confidence == 1
        assert found.before.effective_classes == pytest.approx(math.exp(scipy_entropy([2, 1, 1])))
        assert json.loads(json.dumps(found.as_json()))["moved"] == [0.1, None, 0.3]

    def test_a_collapse_is_said_and_a_change_is_not(self, ensemble):
        mixed, few = sure_of(*[0, 1, 2, 3, 4] * 20), sure_of(*[0, 0, 1, 0, 0] * 20)
        assert (
            "collapsed onto few classes: from 5.0 effective classes to 1.6"
            in self.summary(mixed, few, ensemble).warnings[0]
        )
        assert self.summary(mixed, sure_of(*[0, 1, 2, 3, 0] * 20), ensemble).warnings == ()
        assert self.summary(few, mixed, ensemble).warnings == ()

    def test_a_collapse_of_labels_alone_is_said(self, ensemble):
        """Every image gets class 0, by a little; the mean prediction is spread over all."""
        rows = torch.full((100, 5), 0.19, dtype=torch.float64)
        rows[:, 0] = 0.24
        found = self.summary(sure_of(*[0, 1, 2, 3, 4] * 20), predictions(*rows.tolist()), ensemble)
        assert found.after.effective_classes > 4.9
        assert "collapsed onto few classes: from 5.0 counted classes to 1.0" in found.warnings[0]

    def test_a_member_that_collapsed_alone_is_named(self, ensemble):
        mixed = torch.tensor([0, 1, 2, 3, 4] * 20)
        before = average([sure_of(*mixed.tolist()).probabilities] * 3)
        for fallen, words in (([2], "member 2 collapsed"), ([0, 2], "members 0, 2 collapsed")):
            labels = before.labels.clone()
            labels[fallen] = 3
            (warning,) = self.summary(before, before._replace(labels=labels), ensemble).warnings
            assert warning.startswith(f"{words} onto few classes: member {fallen[0]} from 5.0 counted classes to 1.0")

    def test_weights_that_went_far_are_said(self, ensemble):
        made = sure_of(*[0, 1, 2, 3, 4] * 20)
        said = [
            summarise(ensemble, made, made, moved, method="tent", batch_size=128).warnings
            for moved in ([0.1, 12.3, None], [0.1, 4.9, None], [None] * 3)
        ]
        assert said[0][0].startswith("weights moved by 12.3 posterior standard deviations, of which draws have 1")
        assert said[1:] == [(), ()]

    def test_one_class_throughout_is_said(self, ensemble):
        one = sure_of(*[2] * 100)
        assert "nearly all images are predicted to be of one class" in self.summary(one, one, ensemble).warnings[0]
        assert self.summary(one, one, ensemble, method="vanilla").warnings == ()  # which is what it would advise

    def test_a_spread_that_costs_confidence_is_said_and_one_that_does_not_is_not(self, ensemble):
        def spread(top, classes):
            rows = torch.full((100, 5), (1 - top) / 4, dtype=torch.float64)
            rows[torch.arange(100), torch.arange(100) % classes] = top
            return average([rows])

        one, sure, unsure = spread(0.95, 1), spread(0.93, 5), spread(0.8, 5)
        assert (
            "if the images are of few classes, batch statistics do harm"
            in self.summary(one, unsure, ensemble).warnings[0]
        )
        assert self.summary(one, sure, ensemble).warnings == ()
        assert self.summary(sure, unsure, ensemble).warnings == ()

    @pytest.mark.parametrize(
        ("images", "batch_size", "method", "message"),
        [
            (20, 128, "bn", "batch statistics of 20 images are noisy: give at least 32"),
            (200, 8, "bacs", "batch statistics of batches of 8 are noisy"),
            (130, 128, "tent", "the last batch has only 2 images.*batch_size 65 divides them evenly"),
            (20, 128, "vanilla", None),
            (128, 128, "bacs", None),
            (170, 128, "bacs", None),
        ],
    )
    def test_batches_too_small_for_statistics_are_said(self, ensemble, images, batch_size, method, message):
        made = sure_of(*[n % 5 for n in range(images)])
        warnings = self.summary(made, made, ensemble, method, batch_size).warnings
        if message is None:
            assert warnings == ()
        else:
            assert len(warnings) == 1
            assert re.search(message, warnings[0])

    def test_the_suggested_batch_size_leaves_no_small_batch(self, ensemble):
        for images in range(33, 400):
            made = sure_of(*[n % 5 for n in range(images)])
            for warning in self.summary(made, made, ensemble, "bn", 32).warnings:
                size = int(warning.split("batch_size ")[1].split()[0])
                assert images % size == 0 or images % size >= size - images / size
                assert size <= 32

    @pytest.mark.parametrize(
        ("order", "method", "in_order", "said"),
        [
            ("sorted", "bn", True, True),
            ("mixed", "bn", True, False),
            ("sorted", "bn", False, False),
            ("sorted", "vanilla", True, False),
            ("sorted", "auto", True, False),
        ],
    )
    def test_classes_in_runs_are_said_of_a_stream(self, ensemble, order, method, in_order, said):
        labels = torch.arange(5).repeat_interleave(64)
        if order == "mixed":
            labels = labels[torch.randperm(320, generator=torch.Generator().manual_seed(0))]
        rows = torch.nn.functional.one_hot(labels, 5).double() * 0.9 + 0.02
        made = average([rows] * 3)
        how = {"method": method, "batch_size": 64, "in_order": in_order}
        warnings = summarise(ensemble, made, made, [None] * 3, **how).warnings
        assert any("classes come in runs: 1.0 in a batch" in warning for warning in warnings) == said

    def test_a_model_without_batch_norm_is_said_once(self, images):
        model = nn.Sequential(nn.Flatten(), nn.LayerNorm(432), nn.Linear(432, 5))
        members = [bacs.Member(model, flat.init(read(model)))] * 3
        made = sure_of(*[n % 5 for n in range(10)])
        warnings = self.summary(made, made, bacs.Ensemble(members)).warnings
        assert len(warnings) == 1
        assert "Sequential has no batch-norm layers" in warnings[0]


def test_the_snippets_of_the_guide_run(tmp_path, monkeypatch, images):
    guide = (Path(__file__).parents[1] / "docs" / "adapt.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(snippets) == 2
    monkeypatch.chdir(tmp_path)
    fit = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
    bacs.Ensemble([replace(small_member(), preprocessing=fit)]).save("runs/cifar10")
    os.mkdir("photos")
    rng = np.random.default_rng(0)
    for number in range(20):
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(f"photos/{number}.png")
    names = {"dataset": TensorDataset(images)}
    for snippet in snippets:
        exec(compile(snippet, "adapt.md", "exec"), names)
    with open("predictions.csv") as file:
        assert len(file.readlines()) == 21
    assert len(names["unsure"]) == 4


def test_the_table_of_few_classes_is_the_records():
    root = Path(__file__).parents[1]
    records = json.loads((root / "results" / "adapt" / "few_classes.json").read_text())["records"]
    guide = (root / "docs" / "measurements" / "adapt.md").read_text()
    assert len(records) == 25
    for name, record in records.items():
        shown = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", guide, re.MULTILINE)
        assert shown, f"the guide lacks {name}"
        before, after = record["before"], record["after"]
        accuracies = f"{100 * before['accuracy']:.0f} → {100 * after['accuracy']:.0f} %"
        assert accuracies in shown.group(1)
        assert shown.group(1).rstrip().endswith("yes") == bool(record["warnings"])
