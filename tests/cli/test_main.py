"""The command itself: help, exit codes, errors of one line."""

import pytest

from bacs import cli
from bacs.errors import DataError


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

    monkeypatch.setitem(cli.VERBS, "demo", failing)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    assert run(capsys, "demo") == (code, "", f"bacs: {error}\n")


def test_debug_shows_where_an_error_came_from(capsys, monkeypatch):
    def failing():
        raise ValueError("deep inside")

    monkeypatch.setitem(cli.VERBS, "demo", failing)
    monkeypatch.setenv("BACS_DEBUG", "1")
    with pytest.raises(ValueError, match="deep inside"):
        cli.main(("demo",))


def test_ctrl_c_is_said_in_one_line(capsys, monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.VERBS, "demo", stopped)
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
