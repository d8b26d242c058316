"""Every snippet of the README runs, its links lead somewhere, and its table is the record's."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pages import with_table
from readme_table import markdown

import bacs
from small import small_member, small_model

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_snippets_are_found():
    assert len(SNIPPETS) == 3


def test_the_snippets_run_one_after_another_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preprocessing = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
    bacs.Ensemble([replace(small_member(seed), preprocessing=preprocessing) for seed in range(2)]).save("runs/cifar10")
    pixels = torch.randint(0, 256, (24, 12, 12, 3), dtype=torch.uint8)
    model = small_model()

    def train_one_epoch(model):
        with torch.no_grad():
            for p in model.parameters():
                p += 1e-3 * torch.randn_like(p)

    names = {
        "images": pixels,
        "camera": pixels.split(8),
        "model": model,
        "epochs": 6,
        "train_one_epoch": train_one_epoch,
        "training_images": torch.randn(24, 3, 12, 12),
    }
    for snippet in SNIPPETS:
        exec(compile(snippet, "README.md", "exec"), names)
    assert names["probabilities"].shape == (8, 5)
    assert (tmp_path / "runs" / "site-42" / "bacs.json").exists()
    assert names["member"].posterior.count == 3
    assert bacs.Ensemble([names["member"]]).predict(torch.randn(4, 3, 12, 12)).shape == (4, 5)


@pytest.mark.parametrize(
    "file", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_relative_links_lead_somewhere(file):
    path = ROOT / file if (ROOT / file).exists() else ROOT / "docs" / file
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text())
    missing = [link for link in links if not (path.parent / link).exists()]
    assert missing == []


def test_the_demo_table_is_the_records():
    lines = markdown(json.loads((ROOT / "results" / "demo" / "records.json").read_text()))
    assert len(lines) == 2 + 12
    assert with_table(README, "demo", lines) == README
