"""`bacs serve` on the command line: what is impossible is said before anything is loaded or listens."""

import socket
import sys
from pathlib import Path

import pytest

import bacs
from bacs import cli
from bacs.serve.state import State
from serving import served_ensemble


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    served_ensemble().save("run")


IMPOSSIBLE = {
    "batch_size must be at least 1, got 0": ("--batch-size", "0"),
    "delay must be 0 to 60 seconds, got -1.0": ("--delay", "-1"),
    "save_every must be at least 1, got 0": ("--save-every", "0"),
    "max_queue must hold a batch at least, 64 images, got 8": ("--max-queue", "8"),
    "host 0.0.0.0 can be reached by others": ("--host", "0.0.0.0"),
    "method must be one of": ("--method", "bax"),
    "coverage must be above 0 and at most 1, got 2.0": ("--coverage", "2"),
    "accuracy needs probabilities that agreement made honest": ("--method", "bacs", "--accuracy", "0.9"),
    "learning_rate must be left out": ("--learning-rate", "0.1"),
    "token_file must be a text file, token cannot be read": ("--token-file", "token"),
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_what_is_impossible_is_exit_code_2(run, capsys, message):
    assert cli.main(("serve", "run", *IMPOSSIBLE[message])) == 2
    assert message in capsys.readouterr().err


def test_a_port_that_is_taken_is_exit_code_1(run, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(("serve", "run", "--port", str(port))) == 1
    assert f"cannot listen on 127.0.0.1 port {port}: " in capsys.readouterr().err


def test_a_run_that_is_missing_is_exit_code_1(run, capsys):
    assert cli.main(("serve", "nothing")) == 1
    assert "nothing is not a saved ensemble" in capsys.readouterr().err


def test_a_state_that_does_not_fit_is_exit_code_2(run, capsys):
    State(Path("state"), save_every=1).write(bacs.stream(served_ensemble(2), "bacs"), frozen=False)
    assert cli.main(("serve", "run", "--port", "0", "--state", "state")) == 2
    assert "state began with another one" in capsys.readouterr().err
    State(Path("mine"), save_every=1).write(bacs.stream(served_ensemble(), "bacs"), frozen=False)
    assert cli.main(("serve", "run", "--port", "0", "--state", "mine")) == 2
    assert "method must be bacs, with which mine began, got auto" in capsys.readouterr().err


def test_a_state_that_cannot_be_written_is_said_before_the_first_request(run, capsys, tmp_path):
    (tmp_path / "state").write_text("a file")
    assert cli.main(("serve", "run", "--port", "0", "--state", "state")) == 1
    assert "state is a file" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_get_it(run, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("bacs.serve.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(bacs.serve, name.removeprefix("bacs.serve."))
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.main(("serve", "run")) == 1
    assert "serving needs uvicorn: pip install 'bacs[serve]'" in capsys.readouterr().err
