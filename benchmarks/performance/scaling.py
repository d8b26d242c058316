"""(h) Seconds of `bacs.adapt` against the number of images and of members, with a straight line through them."""

import bacs
from benchmarks.performance import setting
from benchmarks.performance.alternating import alternate, medians
from benchmarks.performance.line import fit

WIDTH = 16


def run(quick: bool) -> dict:
    width, batch_size = (4, 4) if quick else (WIDTH, setting.BATCH)
    # Whole rounds of members: all cores are busy at every point.
    rounds = (1, 2, 3) if quick else (1, 2, 3, 4)
    members = [setting.cores() * count for count in rounds]
    counts = [batch_size * count for count in ((1, 2, 3) if quick else (2, 4, 8, 16))]
    images = setting.images(counts[-1])
    ensemble = setting.ensemble(width, members[-1])

    def adapt(k, n):
        part, own = bacs.Ensemble(ensemble.members[:k]), images[:n]
        return lambda: bacs.adapt(part, own, "bacs", batch_size=batch_size, learning_rate=setting.LEARNING_RATE)

    axes = {
        "images": {n: adapt(1, n) for n in counts},
        "members": {k: adapt(k, counts[1]) for k in members},
    }
    record: dict = {"width": width, "batch": batch_size, "threads": setting.cores(), "axes": {}}
    with setting.threads(setting.cores()):
        for axis, sides in axes.items():
            turns = alternate({str(x): run for x, run in sides.items()}, turns=1 if quick else 3)
            seconds = list(medians(turns).values())
            line = fit(list(sides), seconds)
            about = {"members": 1} if axis == "images" else {"images": counts[1]}
            unit = axis.removesuffix("s")
            print(f"{axis}: {1000 * line.slope:.3f} ms more each {unit}, R^2 {line.r_squared:.5f}", flush=True)
            record["axes"][axis] = about | {"points": list(sides), "seconds": seconds} | line._asdict()
    return record
