"""(a) Our step against the plain one: TENT, BACS, and BACS with and without its posterior.

Ours is `bacs.stream(...).step`, all included: checks, the way into channels-last, the step, float64 probabilities.
Plain is the loop of plain.py. Both get the same float NCHW batch. Of several members, plain steps one after another.
"""

import copy
from collections.abc import Callable

import bacs
from benchmarks.performance import plain, setting
from benchmarks.performance.alternating import alternate, medians, ratio

# Name, the side whose time is divided, the side it is divided by, what was asked for.
COMPARISONS = (
    ("TENT against plain", "plain TENT", "TENT", "at least 1.4"),
    ("BACS against plain, all weights", "plain all weights", "BACS", "at least 1.6"),
    ("BACS against BACS without posterior", "BACS", "BACS without posterior", "at most 1.03"),
)
METHODS = {"TENT": "tent", "BACS": "bacs", "BACS without posterior": "bacs-no-posterior"}


def sides(width: int, members: int, batch, steps: int) -> dict[str, Callable[[], None]]:
    """`steps` steps of all members, by side."""
    ensemble = setting.ensemble(width, members)
    takers = {}
    for name, stepper in (("plain TENT", plain.tent), ("plain all weights", plain.all_weights)):
        models = [copy.deepcopy(member.model) for member in ensemble.members]
        takers[name] = [stepper(model, learning_rate=setting.LEARNING_RATE) for model in models]
    for name, method in METHODS.items():
        takers[name] = [bacs.stream(ensemble, method, learning_rate=setting.LEARNING_RATE).step]

    def repeated(each):
        def run() -> None:
            for _ in range(steps):
                for step in each:
                    step(batch)

        return run

    return {name: repeated(each) for name, each in takers.items()}


def run(quick: bool) -> dict:
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        steps = 2 if width == 16 else 1
        batch = setting.images(8 if quick else setting.BATCH)
        for threads, members in setting.sharings(width):
            with setting.threads(threads):
                seconds = alternate(sides(width, members, batch, steps), turns=2 if quick else 9 if width == 16 else 5)
            images = steps * members * len(batch)
            speeds = {name: round(images / value, 1) for name, value in medians(seconds).items()}
            print(f"width {width}, threads {threads}, members {members}: images per second {speeds}", flush=True)
            row = {"width": width, "threads": threads, "members": members, "images_per_second": speeds, "ratios": []}
            for name, over, under, asked in COMPARISONS:
                found = ratio(seconds[over], seconds[under])
                print(f"  {name}: {found}, asked {asked}", flush=True)
                row["ratios"].append({"name": name, "asked": asked} | found._asdict())
            rows.append(row)
    return {"batch": len(batch), "rows": rows}
