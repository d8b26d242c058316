"""What is saved comes back bit for bit; what is damaged says so; nothing is ever half-written."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import bacs
from bacs.benchmark.run_checksum import identify_run
from bacs.errors import CheckpointError
from bacs.files import seal
from bacs.parameters import read
from bacs.posteriors import flat, swag_diag, swag_low_rank
from small import noisy_iterates, small_member


class Custom(nn.Module):
    """A class that bacs does not know, with a tied weight and an argument."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, width, bias=False)
        self.third = nn.Linear(width, width, bias=False)
        self.third.weight = self.second.weight

    def forward(self, x):
        return self.third(torch.relu(self.second(torch.relu(self.norm(self.first(x))))))


def custom_ensemble(**arguments):
    model = Custom(**arguments).eval()
    architecture = bacs.Architecture(f"{Custom.__module__}:Custom", arguments)
    return bacs.Ensemble([bacs.Member(model, flat.init(read(model)), architecture=architecture)])


def assert_same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a.members, b.members, strict=True):
        assert all(torch.equal(t, y.model.state_dict()[n]) for n, t in x.model.state_dict().items())
        assert type(x.posterior) is type(y.posterior)
        for old, new in zip(x.posterior, y.posterior, strict=True):
            if isinstance(old, dict):
                assert all(torch.equal(old[n], new[n]) for n in old)
            else:
                assert old == new
        assert (x.preprocessing, x.architecture) == (y.preprocessing, y.architecture)
        assert x.posterior_scale == y.posterior_scale


def test_a_posterior_scale_is_kept_and_one_that_is_not_named_is_1(tmp_path):
    own = replace(small_member(), posterior_scale=1 / 3)
    bacs.Ensemble([own, small_member(1)]).save(tmp_path / "run")
    entries = json.loads((tmp_path / "run" / "bacs.json").read_text())["members"]
    assert ["posterior_scale" in entry for entry in entries] == [True, False]  # as files of older versions are
    assert [member.posterior_scale for member in bacs.load(tmp_path / "run").members] == [1 / 3, 1.0]


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, flat])
def test_an_ensemble_comes_back_bit_for_bit(tmp_path, images, module):
    preprocessing = bacs.Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))
    members = [replace(small_member(seed, module), preprocessing=preprocessing) for seed in range(2)]
    ensemble = bacs.Ensemble(members, class_names=list("abcde"))
    ensemble.save(tmp_path / "run")
    again = bacs.load(tmp_path / "run")
    assert_same(ensemble, again)
    assert again.class_names == list("abcde")
    for method in bacs.METHODS:
        first = bacs.adapt(ensemble, images, method).predict(images)
        assert torch.equal(first, bacs.adapt(again, images, method).predict(images))


@pytest.mark.parametrize(
    "choice",
    [{}, {"statistics": "accumulated"}, {"statistics": "running"}, {"batch_weight": 0.3, "temperature": 2.5}],
)
def test_an_adapted_ensemble_comes_back_and_predicts_the_same(tmp_path, ensemble, images, choice):
    mask = torch.tensor([True, True, False, True, True])
    adapted = bacs.adapt(ensemble, images, "bacs", class_mask=mask, learning_rate=0.02, **choice)
    adapted.save(tmp_path / "site")
    again = bacs.load(tmp_path / "site")
    assert_same(adapted, again)
    assert torch.equal(adapted.predict(images), again.predict(images))
    assert again.adaptation["method"] == "bacs"
    assert again.adaptation["learning_rate"] == 0.02


@pytest.mark.parametrize("method", [name for name, row in bacs.METHODS.items() if not row.chooses])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_stream_in_mid_flight_goes_on_as_if_never_stopped(tmp_path, ensemble, images, method, optimizer):
    stream = bacs.stream(ensemble, method, learning_rate=0.05, optimizer=optimizer)
    batches = images.split(10)
    start = [stream.step(batch) for batch in batches[:2]]
    stream.save(tmp_path / "stream")
    again = bacs.load(tmp_path / "stream")
    assert again.steps == 2
    for batch in batches[2:]:
        assert torch.equal(stream.step(batch), again.step(batch))
    again.reset()
    assert torch.equal(again.step(batches[0]), start[0])


@pytest.mark.parametrize("kind", ["ensemble", "stream"])
def test_files_of_version_0_1_still_load(tmp_path, ensemble, images, kind):
    """What 0.1 wrote: one word for statistics, six settings, nothing of temperature, history or device."""
    made = (
        bacs.adapt(ensemble, images, "bacs")
        if kind == "ensemble"
        else bacs.stream(ensemble, "tent", learning_rate=0.05)
    )
    if kind == "stream":
        made.step(images[:20])
    made.save(tmp_path / "old")
    file = tmp_path / "old" / "bacs.json"
    manifest = json.loads(file.read_text())
    for name in ("batch_weight", "temperature", "reference", "sha256"):
        del manifest[name]
    manifest |= {"format": 1, "statistics": "batch" if kind == "ensemble" else "source"}
    known = ("learning_rate", "posterior_weight", "momentum", "optimizer", "posterior_step", "min_variance")
    if kind == "stream":
        old = manifest["stream"]
        settings = {name: old["settings"][name] for name in known}
        manifest["stream"] = {"method": old["method"], "steps": old["steps"], "settings": settings}
    file.write_text(json.dumps(manifest))
    again = bacs.load(tmp_path / "old")
    if kind == "ensemble":
        assert again.statistics == bacs.Statistics(1.0)
        assert torch.equal(again.predict(images), made.predict(images))
    else:
        assert again.steps == 1
        assert torch.equal(again.step(images[20:]), made.step(images[20:]))


def test_the_shipped_run_knows_the_size_of_its_images():
    run = Path(__file__).parents[1] / "results" / "cifar10"
    sizes = [member.preprocessing.size for member in bacs.load(run).members]
    assert sizes == [(32, 32)] * 5
    # The records beside it name the run by this sum, and a sweep goes on with no other.
    record = json.loads((run.parent / "cifar10-c" / "sweep.json").read_text())
    assert identify_run(run)["sha256"] == record["run"]["sha256"]


def test_types_other_than_float32_come_back(tmp_path):
    for dtype in (torch.float64, torch.bfloat16):
        member = small_member()
        bacs.Ensemble([replace(member, model=member.model.to(dtype))]).save(tmp_path / "run")
        assert bacs.load(tmp_path / "run").members[0].like.dtype == dtype


def test_a_class_of_ones_own_is_passed_or_named_but_never_taken_from_the_file(tmp_path):
    ensemble = custom_ensemble(width=7)
    ensemble.save(tmp_path / "run")
    inputs = torch.randn(20, 8)
    with pytest.raises(CheckpointError, match=r"which bacs does not know; if you trust it, pass the class"):
        bacs.load(tmp_path / "run")
    for source in (Custom, f"{Custom.__module__}:Custom", lambda width: Custom(width)):
        again = bacs.load(tmp_path / "run", model=source)
        assert torch.equal(ensemble.predict(inputs), again.predict(inputs))
        assert again.members[0].model.third.weight is again.members[0].model.second.weight
    with pytest.raises(ValueError, match=r"model 'no.such:Thing' cannot be imported"):
        bacs.load(tmp_path / "run", model="no.such:Thing")
    with pytest.raises(ValueError, match=r"import path 'package.module:Class'"):
        bacs.load(tmp_path / "run", model="Custom")
    with pytest.raises(CheckpointError, match="does not fit"):
        bacs.load(tmp_path / "run", model=lambda width: nn.Linear(8, width))


def test_saving_again_replaces_the_old_files(tmp_path, ensemble, images):
    ensemble.save(tmp_path / "run")
    adapted = bacs.adapt(ensemble, images, "bacs", learning_rate=0.1)
    adapted.save(tmp_path / "run")
    assert_same(adapted, bacs.load(tmp_path / "run"))
    assert len(list((tmp_path / "run").iterdir())) == 1 + len(ensemble)


HEAD = '{"format": 1, "kind": "ensemble", "files": {}, "versions": {"bacs": "0.1.0", "torch": "2.13.0"}'


def edit(file, *path, value, sealed=True):
    """Changes one field of a manifest, as somebody would who knows how to seal it, or does not."""
    manifest = json.loads(file.read_text())
    table = manifest
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    if sealed:
        del manifest["sha256"]
        manifest = seal(manifest)
    file.write_text(json.dumps(manifest))


class TestDamage:
    @pytest.fixture
    def run(self, tmp_path, ensemble):
        ensemble.save(tmp_path / "run")
        return tmp_path / "run"

    def test_every_single_truncation_or_changed_byte_is_noticed(self, run):
        file = next(run.glob("member-1-*"))
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-1] + bytes([whole[-1] ^ 1]), whole + b"x"):
            file.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"member-1-.*is damaged"):
                bacs.load(run)

    def test_a_missing_file_is_named(self, run):
        next(run.glob("member-2-*")).unlink()
        with pytest.raises(CheckpointError, match=r"member-2-.*cannot be read: No such file"):
            bacs.load(run)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "is damaged"),
            ("[]", "is not a bacs manifest"),
            ('{"format": 1}', "is not a bacs manifest"),
            ('{"format": 99, "kind": "ensemble", "files": {}}', "has format 99, this version reads 1"),
            ('{"format": 1, "kind": "ensemble", "files": {}}', "lacks 'versions'"),
            (f"{HEAD}}}", "lacks 'class_names'"),
            (f'{HEAD}, "class_name": null}}', "has an unknown key 'class_name'; it may have class_names, class_mask"),
            (f'{HEAD}, "members": 3}}', "lacks 'class_names'"),
            (f"[{'[' * 100_000}", "is damaged: it is nested too deeply"),
            ('{"format": 3, "kind": "ensemble", "files": {}}', "what it says does not match its checksum"),
        ],
    )
    def test_a_damaged_or_foreign_manifest_is_named(self, run, text, message):
        (run / "bacs.json").write_text(text)
        with pytest.raises(CheckpointError, match=message):
            bacs.load(run)

    def test_a_folder_that_is_no_run(self, tmp_path):
        with pytest.raises(CheckpointError, match="is not a saved ensemble: there is no such folder"):
            bacs.load(tmp_path / "nowhere")
        with pytest.raises(CheckpointError, match=r"is not a saved ensemble: it has no bacs.json"):
            bacs.load(tmp_path)

    def test_a_foreign_safetensors_file_in_place_of_a_member(self, run):
        manifest = json.loads((run / "bacs.json").read_text())
        file = run / manifest["files"]["member-0"]["file"]
        save_file({"something": torch.zeros(3)}, file)
        with pytest.raises(CheckpointError, match="is damaged"):
            bacs.load(run)

    def test_a_manifest_cannot_point_outside_of_its_folder(self, run, tmp_path):
        secret = tmp_path / "secret.safetensors"
        secret.write_bytes(b"x")
        edit(run / "bacs.json", "files", "member-0", "file", value="../secret.safetensors")
        with pytest.raises(CheckpointError, match=r"files.member-0.file must be the name of a .safetensors file in"):
            bacs.load(run)

    def test_a_field_that_was_changed_is_noticed(self, run):
        edit(run / "bacs.json", "temperature", value=2.0, sealed=False)
        with pytest.raises(CheckpointError, match=r"bacs.json is damaged: what it says does not match its checksum"):
            bacs.load(run)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("temperature",), "hot", "temperature must be a number above 0, got 'hot'"),
            (("class_names",), [1, 2], r"class_names must be a list of texts, got \[1, 2\]"),
            (("batch_weight",), 1.5, "batch_weight must be a number from 0 to 1, got 1.5"),
            (("statistics",), "sourze", "statistics must be one of source, running, accumulated; got 'sourze'"),
            (
                ("members", 0, "posterior", "dtype"),
                "fdoat32",
                "dtype must be one of float16, .* got 'fdoat32'",
            ),
            (("members", 0, "posterior", "mean_of_model"), "nn", "posterior.mean_of_model must be one of float16"),
            (("members", 0, "posterior", "kind"), "swag", "posterior.kind must be one of flat, swag_diag"),
            (("members", 0, "posterior", "count"), -1, "posterior.count must be a whole number from 0 on, got -1"),
            (("members", 0, "posterior", "extra"), 1, "the posterior has 'extra', which a swag_diag has not"),
            *(
                (("members", 0, "posterior_scale"), value, r"members.0.posterior_scale must be a number from 1e-30 to")
                for value in (0, -1.0, 1e31, 1e-31, float("nan"), float("inf"), True, "1")
            ),
            (("members", 0, "architecture", "arguments"), [], "members.0.architecture.arguments must be a table"),
            (("members", 0, "architecture", "arguments", "width"), 10**12, "its tensors are of no network with width="),
            (("members", 0, "architecture", "arguments", "blocks"), 7, "the checkpoint does not fit resnet26"),
            (("files", "member-7"), {"file": "x", "sha256": "0" * 64, "bytes": 1}, "files.member-7.file must be"),
        ],
    )
    def test_a_strangers_word_is_checked_before_it_is_looked_up(self, run, path, value, message):
        edit(run / "bacs.json", *path, value=value)
        with pytest.raises(CheckpointError, match=message):
            bacs.load(run)


class TestInterruption:
    @pytest.mark.parametrize("failing", range(1, 5))
    def test_a_full_disk_at_any_file_leaves_the_old_run_whole(self, tmp_path, ensemble, images, failing, monkeypatch):
        ensemble.save(tmp_path / "run")
        adapted = bacs.adapt(ensemble, images, "bacs", learning_rate=0.1)
        calls, original = [], os.fsync

        def fsync(descriptor):
            calls.append(descriptor)
            if len(calls) == failing:
                raise OSError(28, "No space left on device")
            original(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(
            CheckpointError, match=r"could not save to .*No space left on device; what was there is intact"
        ):
            adapted.save(tmp_path / "run")
        monkeypatch.undo()
        assert_same(ensemble, bacs.load(tmp_path / "run"))
        assert not list((tmp_path / "run").glob(".*tmp"))

    def test_a_folder_with_other_things_is_left_alone(self, tmp_path, ensemble):
        (tmp_path / "thesis.tex").write_text("...")
        with pytest.raises(CheckpointError, match="holds something else"):
            ensemble.save(tmp_path)
        (tmp_path / "file").write_text("")
        with pytest.raises(CheckpointError, match="is a file; a run is saved as a folder"):
            ensemble.save(tmp_path / "file")


def test_nothing_is_pickled(tmp_path, ensemble):
    ensemble.save(tmp_path / "run")
    suffixes = {file.suffix for file in (tmp_path / "run").iterdir()}
    assert suffixes == {".json", ".safetensors"}


def test_iterates_survive_so_that_collection_can_go_on(tmp_path):
    member = small_member()
    bacs.Ensemble([member]).save(tmp_path / "run")
    again = bacs.load(tmp_path / "run").members[0].posterior
    more = next(noisy_iterates(member.model, seed=9))
    a, b = swag_diag.update(member.posterior, more), swag_diag.update(again, more)
    assert all(torch.equal(a.mean[n], b.mean[n]) for n in a.mean)
