"""Members and portions as jobs: the rows of one machine, each once, however the work is cut."""

import numpy as np
import pytest
import torch

import bacs
from bacs import inputs
from bacs.drivers import compare, spread
from bacs.engine import Place
from bacs.inputs import PerMember
from bacs.methods.settings import Settings

HERE = Place(workers=1)  # jobs one after another in this process
TEACHER = {"objective": "entropy + 0.5 * ensemble_teacher", "learning_rate": 0.05}


@pytest.fixture
def views(images):
    return PerMember([images.numpy()] * 3)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("vanilla", {}),
        ("bn", {}),
        ("bn", {"statistics": "running"}),
        ("tent", {"statistics": "accumulated"}),
        ("bacs", {"learning_rate": 0.01}),
        ("bacs", {"batch_weight": 0.5, "temperature": "agreement"}),
        ("bacs", TEACHER),  # members look at each other
        ("auto", {}),
    ],
)
def test_rows_and_weights_are_those_of_one_machine(ensemble, views, monkeypatch, method, settings):
    monkeypatch.setattr(spread, "PORTION", 16)
    how = {"epochs": 1.5, "batch_size": 8, "predict_batch_size": 6, "seed": 3}
    here = compare(ensemble, views, method, Settings(**settings), **how)
    there = spread.compare(HERE, ensemble, views, method, Settings(**settings), **how)
    for one, other in ((here.before, there.before), (here.after, there.after)):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert there.adapted.adaptation == here.adapted.adaptation
    assert (there.adapted.temperature, there.adapted.statistics) == (here.adapted.temperature, here.adapted.statistics)
    for mine, theirs in zip(there.adapted.members, here.adapted.members, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine.model.parameters(), theirs.model.parameters(), strict=True))
        assert type(mine.posterior) is type(theirs.posterior)


def test_members_of_different_sizes_have_images_of_their_own(ensemble, images):
    large = torch.nn.functional.interpolate(images, scale_factor=2).numpy()
    views = PerMember([images.numpy(), large, images.numpy()])
    here, there = compare(ensemble, views, "bn", Settings()), spread.compare(HERE, ensemble, views, "bn", Settings())
    assert torch.equal(here.after.probabilities, there.after.probabilities)


def test_progress_counts_every_pass(ensemble, views):
    heard = {"here": [], "there": []}
    for method in ("bn", "bacs", "auto"):
        compare(ensemble, views, method, Settings(), epochs=2, on_batch=heard["here"].append)
        spread.compare(HERE, ensemble, views, method, Settings(), epochs=2, on_batch=heard["there"].append)
        assert sum(heard["here"]) == sum(heard["there"])


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 8, 16, 17, 64])
def test_portions_end_where_batches_end(monkeypatch, batch_size):
    monkeypatch.setattr(spread, "PORTION", 16)
    for count in range(1, 70):
        sizes = spread.portion_sizes(count, batch_size)
        cut = [size for portion in sizes for size in inputs.batch_sizes(portion, batch_size)]
        assert cut == inputs.batch_sizes(count, batch_size)
        assert max(sizes) <= max(16, batch_size) + 1


def test_every_row_is_predicted_once(ensemble, views, monkeypatch):
    monkeypatch.setattr(spread, "PORTION", 16)
    jobs = []
    monkeypatch.setattr(spread, "run_job", lambda job, run=spread.run_job: jobs.append(job) or run(job))
    spread.compare(HERE, ensemble, views, "bn", Settings(), batch_size=8)
    portions = [job.positions for job in jobs if isinstance(job, spread.Portion)]
    assert len(portions) == 6
    assert np.array_equal(torch.cat(portions).sort().values, np.repeat(np.arange(40), 2))  # before and after


def test_what_does_not_fit_is_said_before_any_job(ensemble, monkeypatch):
    monkeypatch.setattr(spread, "run_job", None)
    wide = np.zeros((40, 4, 12, 12), np.float32)
    for method in bacs.METHODS:
        with pytest.raises(ValueError, match="it takes 3 channels, got 4 channels"):
            spread.compare(HERE, ensemble, PerMember([wide] * 3), method, Settings())
