"""Sweeps on Ray: the same records as local processes, and every cell in spite of a lost worker and a lost machine."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bacs.benchmark import plan, records, sweep
from bacs.engine import Place
from ray_nodes import raylet_of, two_nodes, working_children
from tiny import scores_of

pytestmark = [pytest.mark.needs("ray"), pytest.mark.filterwarnings("ignore")]


def quiet():
    return Console(file=io.StringIO())


@pytest.fixture(scope="module")
def cluster():
    yield from two_nodes()


@pytest.fixture
def longer(recipe):
    """Cells that take long enough to be met at work."""
    return replace(recipe, methods=("bn", "tent", "bacs", "bacs-no-posterior"), epochs=(15,))


def test_records_are_those_of_local_processes(cluster, recipe, run_folder, tmp_path):
    local = sweep(recipe, run_folder, tmp_path / "local", place=Place(workers=1), console=quiet())
    ray = sweep(recipe, run_folder, tmp_path / "ray", place=Place("ray"), console=quiet())
    assert local == ray == (8, 0, 8, {})
    assert scores_of(tmp_path / "local") == scores_of(tmp_path / "ray")
    assert sorted(file.name for file in (tmp_path / "ray").iterdir()) == ["records", "sweep.json"]
    assert sweep(recipe, run_folder, tmp_path / "ray", place=Place("ray"), console=quiet()).skipped == 8


def test_a_cell_that_fails_is_recorded_there_too(cluster, recipe, run_folder, tmp_path):
    wild = replace(recipe, methods=("bn", "bacs-no-posterior"), method={"bacs-no-posterior": {"learning_rate": 1e30}})
    summary = sweep(wild, run_folder, tmp_path / "out", place=Place("ray"), console=quiet())
    assert (summary.finished, len(summary.failed)) == (2, 2)
    assert sum(record["error"] is not None for record in records(tmp_path / "out")) == 2


def test_a_killed_worker_and_a_killed_raylet_cost_no_cell(cluster, longer, run_folder, tmp_path):
    sweep(longer, run_folder, tmp_path / "local", place=Place(workers=1), console=quiet())
    out = tmp_path / "out"
    killed = []

    def harm():
        wait_for(lambda: list(out.glob("working/*/progress/*")))
        raylet = raylet_of(cluster.second)
        worker = wait_for(lambda: working_children(raylet))[0]
        os.kill(worker, signal.SIGKILL)
        killed.append("worker")
        wait_for(lambda: len(list((out / "records").glob("*.json"))) >= 2 and working_children(raylet))
        os.kill(raylet, signal.SIGKILL)
        killed.append("raylet")

    thread = threading.Thread(target=harm)
    thread.start()
    summary = sweep(longer, run_folder, out, place=Place("ray"), console=quiet())
    thread.join()
    assert killed == ["worker", "raylet"]
    assert summary == (8, 0, 8, {})
    assert {record["id"] for record in records(out)} == {cell.id for cell in plan(longer)}
    assert scores_of(out) == scores_of(tmp_path / "local")


def test_kills_of_the_whole_sweep_lose_no_record(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "kill_and_resume_sweep.py"
    command = [sys.executable, str(script), "--kills", "2", "--limit", "16", "--engine", "ray"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, equal bit for bit" in done.stdout


def wait_for(condition, seconds=180):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.005)
    raise AssertionError("waited in vain")
