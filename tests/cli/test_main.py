"""The command itself: help, exit codes, errors of one line."""

import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import pytest

import bacs
from bacs import cli, toml
from bacs.engine import Place
from bacs.errors import DataError
from small import small_member
from sweep_records import make_record, write_sweep
from tiny import tiny_ensemble


def run(capsys, *arguments):
    try:
        code = cli.main(arguments)
    except SystemExit as exit:  # tyro leaves this way after help and parse errors
        code = exit.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_every_verb_has_help_with_an_example(capsys):
    assert len(cli.VERBS) >= 3
    for verb in cli.VERBS:
        code, out, _ = run(capsys, verb, "--help")
        assert code == 0
        assert f"bacs {verb}" in out.split("Example:")[1], f"{verb} shows no example"


def test_help_lists_the_verbs_and_where_to_begin(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "bacs demo" in out
    assert all(verb in out for verb in cli.VERBS)


def test_the_overview_says_what_the_verbs_say_of_themselves():
    for verb, text in cli.VERBS.items():
        assert (cli.function_of(verb).__doc__ or "").replace("\n", " ").startswith(text.removesuffix(".")), verb


LIGHT = """
import sys
from bacs.cli import main
for arguments, expected in {calls}:
    try:
        code = main(arguments)
    except SystemExit as exit:
        code = exit.code
    assert code == expected, (arguments, code)
    found = {{"torch", "numpy", "scipy"}} & set(sys.modules)
    assert not found, (arguments, found)
print("light", file=sys.stderr)
"""


def test_help_and_usage_errors_wait_for_nothing_that_is_slow():
    calls = [(["--help"], 0), (["--version"], 0), (["adpt"], 2), ([], 2)]
    for verb in cli.VERBS:
        calls += [([verb, "--help"], 0), ([verb, "--unknown"], 2)]
    assert len(calls) == 4 + 2 * 12
    found = subprocess.run(
        [sys.executable, "-c", LIGHT.format(calls=calls)], capture_output=True, text=True, check=False
    )
    assert found.stderr.endswith("light\n"), found.stderr


def test_the_version_and_the_module(capsys):
    assert run(capsys, "--version") == (0, f"bacs {bacs.__version__}\n", "")
    found = subprocess.run([sys.executable, "-m", "bacs", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout == f"bacs {bacs.__version__}\n"


def test_recipes_are_listed_shown_and_taken_by_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "recipes")
    assert code == 0
    assert out.index("bacs train") < out.index("  fashion-mnist-small") < out.index("bacs sweep")
    code, out, _ = run(capsys, "recipes", "fashion-mnist-small")
    assert 'data = "fashion-mnist-part"' in out
    code, _, err = run(capsys, "recipes", "fashion-mnist-smal")
    assert (code, "did you mean 'fashion-mnist-small'?" in err) == (1, True)
    code, _, err = run(capsys, "sweep", "cifar10-c-smal", "--run", "r", "--out", "o")
    assert (code, "did you mean 'cifar10-c-small'?" in err) == (1, True)
    code, _, err = run(capsys, "sweep", "fashion-mnist-small", "--run", "r", "--out", "o")
    assert (code, "this is a recipe for bacs train, not for bacs sweep" in err) == (1, True)


def test_every_recipe_that_a_page_names_is_there():
    root = Path(__file__).parents[2]
    named = [
        (file.name, verb, word)
        for file in (root / "README.md", *sorted((root / "docs").glob("*.md")))
        for verb, word in re.findall(r"bacs (train|sweep|tune) ([\w.-]+) +--", file.read_text())
        if word not in ("RECIPE", "recipe.toml", "mine.toml") and not word.startswith("-")
    ]
    assert len(named) > 15
    wrong = [
        each for each in named if each[2] not in toml.shipped_recipes() or toml.verb_of(toml.read(each[2])) != each[1]
    ]
    assert wrong == []


def test_completion_knows_verbs_and_flags(capsys):
    code, out, _ = run(capsys, "completion", "bash")
    assert code in (0, None)
    assert "adapt" in out
    assert "--batch-size" in out


class TestInfo:
    def test_an_ensemble(self, capsys, tmp_path, images):
        ensemble = bacs.Ensemble([small_member(seed) for seed in range(3)], class_names=list("abcde"))
        bacs.adapt(ensemble, images, "auto").save(tmp_path / "site")
        code, out, _ = run(capsys, "info", str(tmp_path / "site"))
        assert code == 0
        for said in ("3 x ", "3 x swag_diag", "5: a, b, c, d, e", "by auto: ", f"bacs {bacs.__version__}"):
            assert said in out
        told = json.loads(run(capsys, "info", str(tmp_path / "site"), "--json")[1])
        assert told["kind"] == "ensemble"
        assert told["posteriors"] == {"swag_diag": 3}
        assert told["posterior scales"] == [1.0, 1.0, 1.0]

    def test_posterior_scales_are_said_by_their_range(self, capsys, tmp_path):
        members = [replace(small_member(seed), posterior_scale=scale) for seed, scale in enumerate((5230.0, 1.0, 40.0))]
        bacs.Ensemble(members).save(tmp_path / "run")
        (line,) = [line for line in run(capsys, "info", str(tmp_path / "run"))[1].splitlines() if "scales" in line]
        assert line.split(maxsplit=2) == ["posterior", "scales", "1 to 5.23e+03"]

    def test_a_stream(self, capsys, tmp_path, images):
        stream = bacs.stream(bacs.Ensemble([small_member()]), "bn")
        stream.step(images)
        stream.save(tmp_path / "live")
        assert "bn, after 1 steps" in run(capsys, "info", str(tmp_path / "live"))[1]

    def test_what_is_no_run(self, capsys, tmp_path):
        code, _, err = run(capsys, "info", str(tmp_path))
        assert code == 1
        assert "is not a saved ensemble" in err


def test_help_names_what_the_environment_may_hold(capsys):
    out = run(capsys, "--help")[1]
    assert "BACS_DEBUG=1" in out
    assert "BACS_DATA" in out


def test_help_speaks_of_what_an_argument_is_and_not_of_python(capsys):
    for verb in cli.VERBS:
        out = run(capsys, verb, "--help")[1]
        marks = r"None\b|NoneType|<class '|\[bold\]|`|\(default: \)|\b(PATH|STR|INT|FLOAT|True|False)\b"
        assert re.findall(marks, out) == [], verb


def test_help_says_recipe_data_and_run(capsys):
    expected = {
        "train": ("RECIPE", "--out DIR", "--workers N"),
        "sweep": ("RECIPE", "--run RUN", "--settings FILE", "--limit N", "--address HOST:PORT"),
        "tune": ("RECIPE", "--criterion accuracy|nll|brier|ece"),
        "corrupt": ("DATA", "--corruptions NAME ...", "--severities N ..."),
        "posterior": ("CHECKPOINT ...", "--data DATA", "--kind fisher|swag"),
        "adapt": ("IMAGES ...", "--out FILE", "--size HEIGHT WIDTH"),
        "serve": ("RUN", "--state DIR", "--port N"),
        "report": ("DIR ...",),
    }
    for verb, words in expected.items():
        out = run(capsys, verb, "--help")[1]
        assert [word for word in words if word not in out] == [], verb


def test_what_light_files_repeat_is_what_the_slow_ones_say():
    assert tuple(bacs.metrics.SCORES) == import_module("bacs.cli.tune").CRITERIA
    flags, place = (
        {field.name: field.default for field in fields(kind)} for kind in (import_module("bacs.cli.place").Where, Place)
    )
    assert flags == place


@pytest.mark.parametrize(
    ("flag", "values", "message"),
    [
        ("--batch-size", ("ten",), "Error parsing --batch-size: must be a whole number, got ten"),
        ("--temperature", ("hot",), "Error parsing --temperature: must be a number or the word agreement"),
        ("--seed", ("x",), "Error parsing --seed: must be a whole number, got x"),
        ("--learning-rate", ("fast",), "Error parsing --learning-rate: must be a number, got fast"),
        ("--size", ("32",), "Missing value for argument '--size'. Expected 2 values."),
        ("--size", ("32", "x"), "Error parsing --size: must be two whole numbers, got 32 x"),
    ],
)
def test_a_wrong_value_is_said_in_plain_words(capsys, flag, values, message):
    code, _, err = run(capsys, "adapt", "run", "photos", "--out", "a.csv", flag, *values)
    assert code == 2
    assert message in err
    assert "NoneType" not in err
    assert "[bold]" not in err


@pytest.mark.parametrize("arguments", [(), ("dmo",), ("demo", "--verbos")])
def test_a_misspelt_command_is_exit_code_2(capsys, arguments):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "bacs" in err


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("x must be > 0, got -1"), 2), (TypeError("x"), 2), (DataError("no file"), 1)]
)
def test_errors_are_one_line_and_a_code(capsys, monkeypatch, error, code):
    def failing():
        raise error

    monkeypatch.setattr("bacs.cli.demo.demo", failing)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    assert run(capsys, "demo") == (code, "", f"bacs: {error}\n")


def test_debug_shows_where_an_error_came_from(capsys, monkeypatch):
    def failing():
        raise ValueError("deep inside")

    monkeypatch.setattr("bacs.cli.demo.demo", failing)
    monkeypatch.setenv("BACS_DEBUG", "1")
    with pytest.raises(ValueError, match="deep inside"):
        cli.main(("demo",))


OUTPUTS = {
    "corrupt": ("fashion-mnist-part",),
    "train": ("recipe.toml",),
    "demo": (),
    "posterior": ("run", "--data", "fashion-mnist-part"),
    "sweep": ("sweep.toml", "--run", "run"),
    "tune": ("tune.toml", "--run", "run"),
    "report": ("swept",),
}


@pytest.mark.parametrize("verb", OUTPUTS)
def test_an_out_that_cannot_be_written_is_one_line_before_any_work(capsys, monkeypatch, tmp_path, verb):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    tiny_ensemble().save("run")
    Path("file").write_text("")
    Path("recipe.toml").write_text('data = "fashion-mnist-part"\nepochs = 1\n[model]\nname = "resnet26"\n')
    Path("sweep.toml").write_text('data = "fashion-mnist-part-c"\nmethods = ["bn"]\n')
    Path("tune.toml").write_text(
        'data = "fashion-mnist-part-c"\ncorruptions = ["spatter"]\nmethod = "bacs"\n[grid]\nlearning_rate = [0.1, 1]\n'
    )
    write_sweep(tmp_path / "swept", [make_record()])
    code, out, err = run(capsys, verb, *OUTPUTS[verb], "--out", "file/out")
    assert (code, out) == (1, "")
    assert err == "bacs: out file/out cannot be written: file: Not a directory\n"


def test_a_disk_that_fills_is_said_in_one_line(capsys, monkeypatch):
    def full():
        raise OSError(28, "No space left on device", "out/fog.npy")

    monkeypatch.setattr("bacs.cli.demo.demo", full)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    assert run(capsys, "demo") == (1, "", "bacs: out/fog.npy: No space left on device\n")


def test_ctrl_c_is_said_in_one_line(capsys, monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr("bacs.cli.demo.demo", stopped)
    assert run(capsys, "demo") == (130, "", "bacs: stopped\n")


@pytest.mark.parametrize("verb", [("corrupt", "cifar10"), ("train", "recipe.toml")])
def test_download_is_tried_only_when_asked_for(capsys, monkeypatch, tmp_path, verb):
    def fetch(remote, root, *rest, **options):
        raise DataError(f"asked for {remote.url}")

    monkeypatch.setattr("bacs.data.locate.fetch", fetch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text('data = "cifar10"\nepochs = 1\n[model]\nname = "resnet26"\n')
    arguments = (*verb, "--out", "out", "--data-dir", str(tmp_path))
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "(--download)" in err
    code, _, err = run(capsys, *arguments, "--download")
    assert code == 1
    assert "asked for https://www.cs.toronto.edu" in err
