"""Two processes for one member, over gloo."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

import bacs
from bacs.training.train import is_distributed

SCRIPT = Path(__file__).parent / "two_processes.py"


def test_two_processes_take_the_steps_of_one_on_the_same_batches(tmp_path, data_file, recipe_file):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    arguments = [*command, str(data_file), str(recipe_file), str(tmp_path)]
    launcher = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        _, errors = launcher.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)  # torchrun's own children would outlive it
        raise
    assert launcher.returncode == 0, errors[-2000:]

    sys.path.insert(0, str(SCRIPT.parent))
    import two_processes

    alone = two_processes.trained(data_file).model.state_dict()
    together = load_file(tmp_path / "weights.safetensors")
    assert together.keys() == alone.keys()
    for name, tensor in alone.items():
        # The sums of gradients are taken in another order: a few roundings in 9 steps.
        torch.testing.assert_close(together[name], tensor, rtol=1e-4, atol=1e-5)

    (member,) = bacs.load(tmp_path / "run").members  # with batch norm: statistics of half batches, refreshed at the end
    assert member.posterior.count == 4
    assert not (tmp_path / "run" / "training" / "member-1").exists()


def test_a_process_on_its_own_is_not_taken_for_one_of_several(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert not is_distributed()
