"""The Python snippets of guides run as printed."""

import re
from pathlib import Path

import pytest
import torch

import bacs
from small import small_model

DOCS = Path(__file__).parents[1] / "docs"


def run_snippets(page, count, names):
    """Runs the first `count` snippets of a page, one after another; more there must not be unless said."""
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    for snippet in snippets[:count]:
        exec(compile(snippet, f"docs/{page}.md", "exec"), names)
    return len(snippets)


@pytest.mark.parametrize(("page", "count"), [("temperature", 2), ("auto", 1)])
def test_a_page_about_settings(page, count, ensemble, images, capsys):
    names = {"bacs": bacs, "ensemble": ensemble, "images": images}
    assert run_snippets(page, count, names) == count
    assert names["adapted"].adaptation is not None
    if "method" in names:
        assert bacs.adapt(ensemble, images, names["method"]).adaptation["method"] == "custom"


def test_a_stream_is_followed_asked_and_taken_up_again(ensemble, images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"bacs": bacs, "ensemble": ensemble, "images": images, "camera": images.split(20)}
    assert run_snippets("follow", 4, names) == 4
    assert names["seen"].images == 40
    assert [event.what for event in names["stream"].history][-1] == {"reset": ["weights"]}


def test_a_method_is_added_and_compared(ensemble, images, labels, capsys):
    names = {"bacs": bacs, "ensemble": ensemble, "images": images, "labels": labels}
    assert run_snippets("method", 3, names) == 3
    assert names["adapted"].statistics.batch_weight == 0.7
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["vanilla", "bn", "bacs", "own"]


def test_a_training_loop_gets_its_three_lines():
    def train_one_epoch(model):
        with torch.no_grad():
            for p in model.parameters():
                p += 1e-3 * torch.randn_like(p)

    names = {
        "bacs": bacs,
        "model": small_model(),
        "epochs": 6,
        "train_one_epoch": train_one_epoch,
        "train_images": torch.randn(24, 3, 12, 12),
    }
    (snippet, *_) = re.findall(r"```python\n(.*?)```", (DOCS / "training.md").read_text(), re.DOTALL)
    exec(compile(snippet.replace("[member, ...]", "[member]"), "docs/training.md", "exec"), names)
    assert names["member"].posterior.count == 3
    assert names["ensemble"].predict(torch.randn(4, 3, 12, 12)).shape == (4, 5)
