"""A small vision transformer: no batch norm, so adaptation is the weights' alone. SWAG in a loop of its own.

Run it: python examples/small_vit.py
"""

import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag

# One shift that it gains on, one that it does not, and one that it loses on.
SHIFTS = ("brightness/3", "gaussian_noise/5", "brightness/5")


class SmallViT(nn.Module):
    """28 px grey images as 16 patches of 7 px, through two transformer layers with layer norm."""

    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 7, 7)
        self.positions = nn.Parameter(0.02 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.encoder(tokens).mean(dim=1))


def train(images, labels, preprocessing, *, seed, epochs):
    model = bacs.training.initialised(SmallViT, seed=seed).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    posterior, generator = swag_diag.init(read(model)), torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # of dropout
        for epoch in range(epochs):
            for batch in torch.randperm(len(labels), generator=generator).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(preprocessing(images[batch])), labels[batch]).backward()
                optimizer.step()
            if epoch >= epochs // 2:
                posterior = swag_diag.update(posterior, read(model))
    return bacs.training.at_mean(model, posterior, images, preprocessing)


def trained(count=3000, epochs=8):
    source = bacs.data.load("fashion-mnist-part", split="train")
    images, labels = (torch.as_tensor(part[:count]) for part in (source.images, source.labels))
    preprocessing = bacs.Preprocessing((0.286,), (0.353,))
    return bacs.Ensemble([train(images, labels, preprocessing, seed=seed, epochs=epochs) for seed in range(2)])


def main(ensemble, count=1000, shifts=SHIFTS):
    for name in shifts:
        shift = bacs.data.shift(f"fashion-mnist-part-c/{name}", limit=count)
        for method in ("vanilla", "tent", "bacs", "auto"):
            result = bacs.evaluate(ensemble, shift.images, shift.labels, method, batch_size=64).ensemble
            print(f"{name:<16} {method:<8} accuracy {result['accuracy']:.3f}  nll {result['nll']:.3f}")


if __name__ == "__main__":
    main(trained())
