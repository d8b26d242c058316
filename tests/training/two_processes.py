"""Run by torchrun in test_distributed.py: trains a model without batch norm, then a whole recipe, on all processes."""

import gc
import io
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import distributed, nn

from bacs.training import fit, initialised, recipe
from bacs.training import train as launcher


def network():
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1600, 3))


def trained(data_file):
    """A member of the test's data; the batches of 21 and 20 images do not split evenly."""
    with np.load(data_file) as arrays:
        images, labels = arrays["x_train"], arrays["y_train"]
    model = initialised(network, seed=0)
    return fit(model, images, labels, epochs=3, batch_size=21, learning_rate=0.02, collect_from=0.3)


if __name__ == "__main__":
    data_file, recipe_file, out = (Path(argument) for argument in sys.argv[1:])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    member = trained(data_file)
    if distributed.get_rank() == 0:
        save_file(dict(member.model.state_dict()), out / "weights.safetensors")
    assert launcher.is_distributed()
    launcher.train_distributed(
        recipe.read(recipe_file),
        out / "run",
        members=[1],
        data_dir=None,
        device="cpu",
        console=Console(file=io.StringIO()),
    )
    gc.collect()  # as bacs.training.train does
    distributed.destroy_process_group()
