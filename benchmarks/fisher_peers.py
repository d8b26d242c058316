"""Our diagonal Fisher against the same quantity in other libraries: a check by hand, none of them is a requirement.

    pip install posteriors==0.1.3 laplace-torch==0.3 backpack-for-pytorch==1.7.1 curvlinops-for-pytorch==3.0.1
    python benchmarks/fisher_peers.py        # writes results/posteriors/peers.json

For a softmax, the generalised Gauss-Newton matrix and the Fisher information are the same, so `diag_ggn` and
`DiagGGNExact` are the exact expectation over classes; `diag_fisher` and `SumGradSquared` take given labels.
"""

import copy
import json
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset

from bacs.posteriors import fisher_diag
from bacs.pretrained import squared_gradients

OUT = Path(__file__).parents[1] / "results" / "posteriors" / "peers.json"


def imported_without_cuda() -> None:
    """torchvision's CUDA build, which laplace-torch imports, wants two operators that CPU builds of torch lack."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    globals()["_library"] = library  # its definitions end with it


def difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """The largest relative difference among numbers above a millionth of the largest."""
    a, b = (torch.cat([value.detach().flatten().double() for value in values]) for values in (ours, theirs))
    kept = b > 1e-6 * b.max()
    return ((a - b).abs() / b)[kept].max().item()


def main() -> None:
    imported_without_cuda()
    from backpack import backpack, extend, extensions
    from laplace import DiagLaplace
    from laplace.curvature import BackPackGGN

    import posteriors

    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(128, 4)),
    ).eval()
    x, y = torch.randn(30, 3, 13, 13), torch.randint(0, 4, (30,))
    params = dict(model.named_parameters())
    exact, given = squared_gradients(model, x), squared_gradients(model, x, y)
    found = {}

    def log_posterior(p, batch):
        logits = functional_call(model, p, (batch[0],))
        return -nn.functional.cross_entropy(logits, batch[1], reduction="none"), logits

    transform = posteriors.laplace.diag_fisher.build(log_posterior, per_sample=True)
    state = transform.update(transform.init(params, init_prec_diag=0.0), (x, y), inplace=False)
    state = state if hasattr(state, "prec_diag") else state[0]
    found["posteriors laplace.diag_fisher, labels given"] = difference(
        list(given.values()), list(state.prec_diag.values())
    )
    transform = posteriors.laplace.diag_ggn.build(
        lambda p, batch: (functional_call(model, p, (batch[0],)), torch.tensor([])),
        lambda logits, batch: -nn.functional.cross_entropy(logits, batch[1], reduction="sum"),
    )
    state = transform.update(transform.init(params, init_prec_diag=0.0), (x, y), inplace=False)
    state = state if hasattr(state, "prec_diag") else state[0]
    found["posteriors laplace.diag_ggn, exact"] = difference(list(exact.values()), list(state.prec_diag.values()))

    extended, loss = extend(copy.deepcopy(model)), extend(nn.CrossEntropyLoss(reduction="sum"))
    with backpack(extensions.DiagGGNExact(), extensions.SumGradSquared()):
        loss(extended(x), y).backward()
    found["backpack DiagGGNExact, exact"] = difference(
        list(exact.values()), [p.diag_ggn_exact for p in extended.parameters()]
    )
    found["backpack SumGradSquared, labels given"] = difference(
        list(given.values()), [p.sum_grad_squared for p in extended.parameters()]
    )

    laplace = DiagLaplace(copy.deepcopy(model), "classification", prior_precision=1.0, backend=BackPackGGN)
    laplace.fit(DataLoader(TensorDataset(x, y), batch_size=10))
    ours = fisher_diag.precision(fisher_diag.update(fisher_diag.init(params), exact, len(x)))
    found["laplace-torch DiagLaplace, posterior precision"] = difference(
        list(ours.values()), [laplace.posterior_precision]
    )
    names = ("posteriors", "laplace-torch", "backpack-for-pytorch", "torch")
    record = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "examples": len(x),
        "largest_relative_difference": found,
        "versions": {name: version(name) for name in names},
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
