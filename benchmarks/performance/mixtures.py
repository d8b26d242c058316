"""(b) Statistics that mix source and batch, against those of the batch alone: a step, and predictions."""

from collections.abc import Callable

import bacs
from benchmarks.performance import setting
from benchmarks.performance.alternating import alternate, ratio

MIXED = 0.5
ASKED = {"TENT step": "at most 1.20", "BACS step": "at most 1.20", "predictions": "at most 1.10"}


def sides(name: str, ensemble: bacs.Ensemble, batch, weight: float, repeats: int) -> Callable[[], None]:
    """`repeats` steps or passes of all members under one batch weight."""
    if name == "predictions":
        adapted = bacs.adapt(ensemble, batch, "bn", batch_weight=weight)
        work = lambda: adapted.predict(batch, batch_size=len(batch))  # noqa: E731
    else:
        stream = bacs.stream(
            ensemble, name.split()[0].lower(), batch_weight=weight, learning_rate=setting.LEARNING_RATE
        )
        work = lambda: stream.step(batch)  # noqa: E731

    def run() -> None:
        for _ in range(repeats):
            work()

    return run


def run(quick: bool) -> dict:
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        batch = setting.images(8 if quick else setting.BATCH)
        repeats = 2 if width == 16 else 1
        for threads, members in setting.sharings(width):
            ensemble = setting.ensemble(width, members)
            for name, asked in ASKED.items():
                with setting.threads(threads):
                    both = {r: sides(name, ensemble, batch, r, repeats) for r in (MIXED, 1.0)}
                    named = {"mixture": both[MIXED], "batch": both[1.0]}
                    seconds = alternate(named, turns=2 if quick else 9 if width == 16 else 5)
                found = ratio(seconds["mixture"], seconds["batch"])
                print(
                    f"width {width}, threads {threads}, members {members}, {name}: {found}, asked {asked}", flush=True
                )
                row = {"name": name, "width": width, "threads": threads, "members": members, "asked": asked}
                rows.append(row | found._asdict())
    return {"batch": len(batch), "batch_weight": MIXED, "rows": rows}
