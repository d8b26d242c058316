"""The examples run, stay short and do what they say."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import bacs
from bacs.parameters import read

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def blobs():
    inputs = torch.randn(256, 2, generator=torch.Generator().manual_seed(0))
    return inputs, (inputs[:, 0] > inputs[:, 1]).long()


def test_every_swag_example_is_under_40_lines_and_needs_no_lightning():
    for name in ("own_loop.py", "lightning_callback.py"):
        lines = (EXAMPLES / name).read_text().splitlines()
        assert len(lines) <= 40, name
        assert not any(line.startswith(("import lightning", "from lightning")) for line in lines)


def test_own_loop_runs_as_a_script_and_adapts(capsys):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        runpy.run_path(str(EXAMPLES / "own_loop.py"), run_name="__main__")
    shown = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(shown["adapted"]) > float(shown["unadapted"])


def test_own_loop_gives_a_member_at_its_posterior_mean(blobs):
    train_member = runpy.run_path(str(EXAMPLES / "own_loop.py"))["train_member"]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        member = train_member(*blobs)
    assert member.posterior.count == 10
    for name, p in member.model.named_parameters():
        assert torch.equal(p, member.posterior.mean[name].float())
    assert bacs.metrics.accuracy(bacs.Ensemble([member]).predict(blobs[0]), blobs[1]) > 0.9


def test_the_callback_collects_what_lightning_would_show_it(blobs):
    callback = runpy.run_path(str(EXAMPLES / "lightning_callback.py"))["CollectSwag"](collect_from=0.5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = SimpleNamespace(model=nn.Linear(2, 2))
    trainer = SimpleNamespace(current_epoch=0, max_epochs=6)
    iterates = []
    callback.on_fit_start(trainer, module)
    for epoch in range(6):
        trainer.current_epoch = epoch
        with torch.no_grad():
            module.model.weight += 0.1 * (epoch + 1)
        callback.on_train_epoch_end(trainer, module)
        iterates.append(read(module.model)["weight"].double())
        callback.load_state_dict(callback.state_dict())
    collected = torch.stack(iterates[3:])
    member = callback.member(module, blobs[0])
    torch.testing.assert_close(member.model.weight.double(), collected.mean(dim=0), rtol=1e-6, atol=1e-7)
    variance = bacs.posteriors.swag_diag.variance(member.posterior)["weight"]
    torch.testing.assert_close(variance, collected.var(dim=0, unbiased=False), rtol=1e-5, atol=1e-9)


def test_the_fisher_example_is_short_and_adapts_a_network_without_a_trajectory(capsys):
    file = EXAMPLES / "fisher_posterior.py"
    assert len(file.read_text().splitlines()) <= 40
    runpy.run_path(str(file))["main"](count=400)
    scale, before, after = capsys.readouterr().out.splitlines()
    assert scale.startswith("median precision")
    assert float(after.split()[-1]) > float(before.split()[-1])


def scores(line):
    """Accuracy and NLL, as the examples print them."""
    words = line.split()
    return float(words[words.index("accuracy") + 1]), float(words[words.index("nll") + 1])


def test_the_table_example_gains_by_the_statistics_of_the_new_sensors(capsys):
    file = EXAMPLES / "tabular.py"
    assert len(file.read_text().splitlines()) <= 70
    runpy.run_path(str(file))["main"](count=513, epochs=5)
    rows = {line.split()[0]: scores(line) for line in capsys.readouterr().out.splitlines()}
    assert list(rows) == ["vanilla", "bn", "bacs", "auto"]
    for method in ("bn", "bacs", "auto"):
        assert rows[method][0] > rows["vanilla"][0]
        assert rows[method][1] < rows["vanilla"][1]


def test_the_transformer_example_adapts_without_batch_norm(capsys):
    file = EXAMPLES / "small_vit.py"
    assert len(file.read_text().splitlines()) <= 70
    example = runpy.run_path(str(file))
    example["main"](example["trained"](count=512, epochs=4), count=128, shifts=("brightness/3",))
    rows = {line.split()[1]: scores(line) for line in capsys.readouterr().out.splitlines()}
    assert list(rows) == ["vanilla", "tent", "bacs", "auto"]
    assert rows["bacs"] != rows["vanilla"]
    assert rows["auto"] == rows["vanilla"]  # without batch norm there is nothing to choose
