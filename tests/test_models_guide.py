"""The snippets of docs/models.md run (timm's and torchvision's in tests/integration); its tables are the records'."""

import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import flat
from guide import SNIPPETS, snippet
from small import small_model

ROOT = Path(__file__).parents[1]


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = small_model(), nn.Linear(5, 3)

    def forward(self, images):
        logits = self.body(images)
        return {"species": logits, "age": self.head(logits)}


def test_the_snippets_are_found():
    assert len(SNIPPETS) == 7


@pytest.mark.filterwarnings("ignore:the Fisher posterior is mostly its prior")  # of a network that was never trained
def test_a_model_in_memory_is_adapted():
    pixels = torch.randint(0, 256, (12, 24, 20, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    names = {"bacs": bacs, "MyNet": small_model, "source_images": pixels[:4], "images": pixels}
    # 224 px are too many for a test: the same line with a smaller size
    text = next(text for text in SNIPPETS if "MyNet().eval()" in text).replace("size=(224, 224)", "size=(12, 12)")
    exec(text, names)
    assert names["adapted"].predict(pixels).shape == (12, 5)
    assert type(names["member"].posterior).__name__ == "FisherDiag"


def test_a_head_is_picked_and_comes_back(tmp_path, monkeypatch, images):
    monkeypatch.chdir(tmp_path)
    model = TwoHeads().eval()
    exec(next(text for text in SNIPPETS if text.startswith("model.register_forward_hook")), {"model": model})
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    ensemble.save("runs/mine")
    names = {"bacs": bacs, "MyNet": TwoHeads}
    exec(snippet("def build"), names)
    assert torch.equal(names["ensemble"].predict(images), ensemble.predict(images))


def test_a_mask_is_made_of_the_tokens():
    class Masked(nn.Module):
        def forward(self, tokens, attention_mask):
            return attention_mask

    model = Masked()
    exec(snippet("register_forward_pre_hook"), {"model": model, "pad_token": 7})
    assert model(torch.tensor([[1, 7]])).tolist() == [[True, False]]


def test_the_tables_are_those_of_the_records():
    tables = runpy.run_path(str(ROOT / "benchmarks" / "model_tables.py"))
    text = (ROOT / "docs" / "measurements" / "models.md").read_text()
    names = ["memory", "small_vit"] + ["efficientnet"] * (ROOT / "results" / "efficientnet" / "about.json").exists()
    for name in names:
        assert f"<!-- table: {name} -->\n" + "\n".join(tables[name]()) + "\n<!-- end -->" in text, name
