"""(f) Training against a plain PyTorch loop, by benchmarks/training.py."""

from argparse import Namespace

from benchmarks import training
from benchmarks.performance import setting
from benchmarks.performance.alternating import ratio


def run(quick: bool) -> dict:
    options = Namespace(
        images=128 if quick else 1280, width=4 if quick else 16, threads=setting.cores(), turns=1 if quick else 3
    )
    with setting.threads(options.threads):
        speeds = training.compare(options)
    ratios = {name: ratio(found, speeds["plain loop"])._asdict() for name, found in speeds.items()}
    del ratios["plain loop"]
    return vars(options) | {"images_per_second": speeds, "ratios": ratios}
