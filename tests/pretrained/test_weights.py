"""Plain weight files become members, and nothing in them runs."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import bacs
from bacs.errors import CheckpointError
from bacs.pretrained import open_weights
from small import small_model


def write(file, state):
    if file.suffix == ".safetensors":
        save_file(state, file)
    elif file.suffix == ".npz":
        np.savez(file, **{name: tensor.numpy() for name, tensor in state.items()})
    else:
        torch.save(state, file)
    return file


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "pt", "pth", "bin"])
def test_weights_of_every_format_fill_the_model(tmp_path, suffix):
    state = small_model(seed=3).state_dict()
    preprocessing = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
    member = open_weights(write(tmp_path / f"weights.{suffix}", state), small_model(seed=0), preprocessing)
    assert all(torch.equal(value, state[name]) for name, value in member.model.state_dict().items())
    assert member.preprocessing == preprocessing
    bacs.Ensemble([member]).save(tmp_path / "run")
    assert len(bacs.load(tmp_path / "run")) == 1


def test_prefixes_nests_and_missing_counters_of_training_programs_are_understood(tmp_path):
    state = small_model(seed=3).state_dict()
    named = {f"module.{name}": t for name, t in state.items() if not name.endswith("num_batches_tracked")}
    file = tmp_path / "epoch-90.pth"
    torch.save({"epoch": 90, "state_dict": named}, file)
    member = open_weights(file, small_model(seed=0))
    assert all(torch.equal(p, state[name]) for name, p in member.model.named_parameters())


class Evil:
    def __reduce__(self):
        return (print, ("code of the file ran",))


def test_a_file_with_code_in_it_is_refused_and_not_run(tmp_path, capsys):
    torch.save({"state_dict": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(CheckpointError, match=r"evil.pt cannot be read as weights"):
        open_weights(tmp_path / "evil.pt", small_model())
    np.savez(tmp_path / "evil.npz", weights=np.array([Evil()], dtype=object))
    with pytest.raises(CheckpointError, match=r"evil.npz cannot be read as weights"):
        open_weights(tmp_path / "evil.npz", small_model())
    assert capsys.readouterr().out == ""


def test_what_does_not_fit_is_named(tmp_path):
    state = small_model().state_dict()
    first = next(iter(state))
    lacking = write(tmp_path / "lacking.pt", {name: t for name, t in state.items() if name != first})
    with pytest.raises(CheckpointError, match=rf"it lacks '{first}' \(1 names differ\)"):
        open_weights(lacking, small_model())
    foreign = write(tmp_path / "foreign.pt", state | {"fc.weight": torch.zeros(1)})
    with pytest.raises(CheckpointError, match=r"it has 'fc.weight', which the model has not"):
        open_weights(foreign, small_model())
    with pytest.raises(CheckpointError, match="does not fit .*: size mismatch"):
        open_weights(write(tmp_path / "wide.pt", state), small_model(width=8))


def test_what_is_no_weight_file_is_said_in_a_line(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        open_weights(tmp_path / "none.pt", small_model())
    with pytest.raises(ValueError, match=r"weights must be a file that ends in .safetensors, .npz, .pt, .pth, .bin"):
        open_weights(tmp_path / "weights.h5", small_model())
    for name in ("broken.safetensors", "broken.npz", "broken.pt"):
        (tmp_path / name).write_bytes(b"not what it says")
        with pytest.raises(CheckpointError, match=f"{name} cannot be read as weights") as raised:
            open_weights(tmp_path / name, small_model())
        assert len(str(raised.value).splitlines()) == 1
    for suffix in (".safetensors", ".npz", ".pt"):
        (tmp_path / f"empty{suffix}").touch()
        with pytest.raises(CheckpointError, match="cannot be read as weights: it is empty"):
            open_weights(tmp_path / f"empty{suffix}", small_model())
    with pytest.raises(CheckpointError, match="holds no state dict"):
        open_weights(write(tmp_path / "list.pt", [1, 2]), small_model())
