"""(c) Offline and online: a whole test set adapted to and predicted, by us and by the plain loop.

Offline: one pass that adapts, one that predicts. Online: each batch is predicted by the forward pass of its own step,
and one forward pass is saved. A forward pass is about a third of a step on all weights: online should cost 3/4.
"""

import copy

import bacs
from benchmarks.performance import plain, setting
from benchmarks.performance.alternating import alternate, medians, ratio


def run(quick: bool) -> dict:
    batch_size = 8 if quick else setting.BATCH
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        images = setting.images(16 if quick else 640 if width == 16 else 256)
        one = setting.ensemble(width, 1)

        def offline(images=images, one=one) -> None:
            adapted = bacs.adapt(one, images, "bacs", batch_size=batch_size, learning_rate=setting.LEARNING_RATE)
            adapted.predict(images, batch_size=batch_size)

        def online(images=images, one=one) -> None:
            stream = bacs.stream(one, "bacs", learning_rate=setting.LEARNING_RATE)
            for batch in images.split(batch_size):
                stream.step(batch)

        def plain_offline(images=images, one=one) -> None:
            model = copy.deepcopy(one.members[0].model)
            plain.epoch(plain.all_weights(model, learning_rate=setting.LEARNING_RATE), images, batch_size)
            plain.predict(model, images, batch_size)

        def plain_online(images=images, one=one) -> None:
            step = plain.all_weights(copy.deepcopy(one.members[0].model), learning_rate=setting.LEARNING_RATE)
            for batch in images.split(batch_size):
                step(batch).softmax(dim=1)

        sides = {"offline": offline, "online": online, "plain offline": plain_offline, "plain online": plain_online}
        with setting.threads(setting.cores()):
            seconds = alternate(sides, turns=1 if quick else 5 if width == 16 else 2)
        ratios = {
            "offline": ratio(seconds["plain offline"], seconds["offline"]),
            "online": ratio(seconds["plain online"], seconds["online"]),
            "online_of_offline": ratio(seconds["online"], seconds["offline"]),
        }
        print(f"width {width}: plain over ours offline {ratios['offline']}, online {ratios['online']}", flush=True)
        print(f"  our online over our offline: {ratios['online_of_offline']}", flush=True)
        rows.append(
            {"width": width, "images": len(images), "threads": setting.cores(), "seconds": medians(seconds)}
            | {name: found._asdict() for name, found in ratios.items()}
        )
    return {"batch": batch_size, "rows": rows}
