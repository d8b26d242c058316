"""`bacs adapt --engine ray` on two nodes of this machine: the rows of the local run, in spite of a lost node."""

import csv
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bacs
from bacs import cli
from bacs.cli.progress import Bars
from ray_nodes import raylet_of, two_nodes, working_children
from small import small_member

needs_ray = pytest.mark.needs("ray")
SIZED = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
COUNT = 1000


@pytest.fixture(scope="module")
def cluster():
    yield from two_nodes()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with `run` of three members and `photos` of a thousand pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    bacs.Ensemble([replace(small_member(seed), preprocessing=SIZED) for seed in range(3)]).save("run")
    os.mkdir("photos")
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        Image.fromarray(rng.integers(0, 256, (12, 14, 3), dtype=np.uint8)).save(f"photos/{number:03}.bmp")
    return tmp_path


def adapt(out, *arguments):
    wishes = ["run", "photos", "--out", out, "--threads", "1", "--batch-size", "64", *arguments]
    return cli.main(["adapt", *wishes])


@needs_ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["vanilla", "auto"])
def test_rows_are_those_of_the_local_run(cluster, place, method):
    assert adapt("local.csv", "--method", method) == adapt("ray.csv", "--method", method, "--engine", "ray") == 0
    assert Path("local.csv").read_bytes() == Path("ray.csv").read_bytes()


@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_is_killed_in_the_middle_costs_no_row(cluster, place, monkeypatch):
    wishes = ("--method", "bacs", "--epochs", "2", "--learning-rate", "0.01", "--probabilities")
    assert adapt("local.csv", *wishes, "--save", "adapted") == 0
    raylet, begin, heard, killed = raylet_of(cluster.second), Bars.step, [], []

    def step(bars, name):
        hear = begin(bars, name)

        def hear_and_kill(done, total):
            hear(done, total)
            if name.startswith("adapting"):
                heard.append(done)
                if not killed and working_children(raylet):
                    os.kill(raylet, signal.SIGKILL)
                    killed.append(len(heard))

        return hear_and_kill

    monkeypatch.setattr(Bars, "step", step)
    assert adapt("ray.csv", *wishes, "--save", "adapted-by-ray", "--engine", "ray") == 0
    assert killed
    assert killed[0] < len(heard)  # work was left
    with open("ray.csv", newline="") as file:
        assert [row["path"] for row in csv.DictReader(file)] == [f"photos/{number:03}.bmp" for number in range(COUNT)]
    assert Path("local.csv").read_bytes() == Path("ray.csv").read_bytes()
    for one, other in zip(bacs.load("adapted").members, bacs.load("adapted-by-ray").members, strict=True):
        assert all((a == b).all() for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "ray", "--online"), "engine ray must be left out with online"),
        (("--address", "10.0.0.1:6379"), "address must be left out without engine ray, got 10.0.0.1:6379"),
    ],
)
def test_what_a_cluster_cannot_do_is_said_before_any_work(place, capsys, arguments, message):
    assert adapt("a.csv", *arguments) == 2
    assert message in capsys.readouterr().err


def test_without_ray_one_line_says_how_to_get_it_before_a_picture_is_read(place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert adapt("a.csv", "--engine", "ray") == 1
    assert capsys.readouterr().err == "bacs: engine 'ray' needs Ray: pip install 'bacs[ray]'\n"
