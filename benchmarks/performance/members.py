"""(b) k members against k times one member, and ten plain runs one after the other against `bacs.adapt` of ten members.

One pass of BACS over the images; the plain run adapts all weights and has no posterior to pay for. Predictions are not
in it: see protocols.py.
"""

import copy

import bacs
from benchmarks.performance import plain, setting
from benchmarks.performance.alternating import alternate, medians, ratio

MEMBERS = 10


def run(quick: bool) -> dict:
    count, batch_size = (2, 8) if quick else (MEMBERS, setting.BATCH)
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        images = setting.images(16 if quick else 640 if width == 16 else 128)
        many = setting.ensemble(width, count)
        one = bacs.Ensemble(many.members[:1])
        arguments = {"batch_size": batch_size, "learning_rate": setting.LEARNING_RATE}

        def plain_runs(images=images, many=many) -> None:
            for member in many.members:
                step = plain.all_weights(copy.deepcopy(member.model), learning_rate=setting.LEARNING_RATE)
                plain.epoch(step, images, batch_size)

        def adapt(ensemble, images=images, arguments=arguments):
            return lambda: bacs.adapt(ensemble, images, "bacs", **arguments)

        with setting.threads(setting.cores()):
            bacs.adapt(many, images[:batch_size], "bacs", **arguments)  # what torch does only once
            seconds = alternate(
                {"plain runs": plain_runs, "members": adapt(many), "one member": adapt(one)},
                turns=1 if quick else 3,
                warm_up=0,
            )
        against_one = ratio(seconds["members"], [count * value for value in seconds["one member"]])
        against_plain = ratio(seconds["plain runs"], seconds["members"])
        print(f"width {width}: {count} members against {count} times one: {against_one}", flush=True)
        print(f"  {count} plain runs against {count} members: {against_plain}, asked at least 1.3", flush=True)
        rows.append(
            {"width": width, "members": count, "images": len(images), "threads": setting.cores()}
            | {"seconds": medians(seconds), "against_one": against_one._asdict()}
            | {"against_plain": against_plain._asdict()}
        )
    return {"batch": batch_size, "asked": "at least 1.3", "rows": rows}
