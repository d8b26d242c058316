"""Every snippet of the README runs, it is short, and its table and its picture are the records'."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import readme_figure
import torch
from pages import with_table
from PIL import Image
from readme_table import markdown

import bacs
from small import small_member

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_snippets_are_found():
    assert len(SNIPPETS) == 2


def test_it_is_read_in_one_go_with_the_picture_before_the_table_and_the_table_before_the_code():
    assert len(README.splitlines()) <= 150
    places = [README.index(part) for part in ("before-after.png", "<!-- table: demo -->", "bacs.load(", "bacs adapt ")]
    assert places == sorted(places)


def test_the_snippets_run_one_after_another_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preprocessing = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
    bacs.Ensemble([replace(small_member(seed), preprocessing=preprocessing) for seed in range(2)]).save("runs/cifar10")
    pixels = torch.randint(0, 256, (24, 12, 12, 3), dtype=torch.uint8)
    names = {"images": pixels, "camera": pixels.split(8)}
    for snippet in SNIPPETS:
        exec(compile(snippet, "README.md", "exec"), names)
    assert names["probabilities"].shape == (8, 5)
    assert (tmp_path / "runs" / "site-42" / "bacs.json").exists()


def test_the_demo_table_is_the_records():
    lines = markdown(json.loads((ROOT / "results" / "demo" / "records.json").read_text()))
    assert len(lines) == 2 + 12
    assert with_table(README, "demo", lines) == README


def test_the_picture_is_the_records():
    called = json.loads(readme_figure.RECORD.read_text())
    labels = readme_figure.snowy_images().labels
    for method, record in readme_figure.demo_records()["snow"].items():
        assert (called[method] == labels).mean() == pytest.approx(record["ensemble"]["accuracy"], abs=1e-12)
    with Image.open(readme_figure.PICTURE) as picture:
        assert picture.info["Record"] == readme_figure.checksum()


def test_the_picture_can_be_drawn_and_marks_what_is_right():
    called = json.loads(readme_figure.RECORD.read_text())
    labels = readme_figure.snowy_images().labels
    marks = [text.get_text()[0] for axes in readme_figure.draw(called).axes[:10] for text in axes.texts]
    shown = [place for number in range(10) for place in [list(labels).index(number)]]
    assert len(marks) == 2 * 10
    assert marks.count("✓") == sum(called[method][place] == labels[place] for method in called for place in shown)
