"""Where the time of a step goes: torch's profiler on one thread, the costliest operators and their shares."""

from torch.profiler import ProfilerActivity, profile

import bacs
from benchmarks.performance import setting

SHOWN = 12


def operators(width: int, method: str, batch, steps: int) -> list[dict]:
    """Self time by operator, largest first: name, share of the whole, calls a step."""
    stream = bacs.stream(setting.ensemble(width, 1), method, learning_rate=setting.LEARNING_RATE)
    stream.step(batch)
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        for _ in range(steps):
            stream.step(batch)
    events = sorted(profiler.key_averages(), key=lambda event: event.self_cpu_time_total, reverse=True)
    total = sum(event.self_cpu_time_total for event in events)
    return [
        {"operator": event.key, "share": event.self_cpu_time_total / total, "calls": event.count / steps}
        for event in events[:SHOWN]
    ]


def run(quick: bool) -> dict:
    batch, steps = setting.images(8 if quick else setting.BATCH), 1 if quick else 3
    rows = []
    with setting.threads(1):
        for width in (4,) if quick else setting.WIDTHS:
            for method in ("tent", "bacs"):
                found = operators(width, method, batch, steps)
                print(f"width {width}, {method}: share of a step's time, calls", flush=True)
                for row in found:
                    print(f"  {100 * row['share']:5.1f} %  {row['calls']:6.1f}  {row['operator']}", flush=True)
                rows.append({"width": width, "method": method, "operators": found})
    return {"batch": len(batch), "threads": 1, "rows": rows}
