"""What the paper's whole ImageNet-C sweep takes on 1, 8 and 64 machines; fills the tables of docs/scale.md.

    python benchmarks/scale.py

From results/scale/cost.json, the cost per image and member (benchmarks/scale_cost.py), and results/scale/ray.json, a
sweep whose cells slept (benchmarks/scale_ray.py).
"""

import json
import math
from collections.abc import Sequence
from functools import cache

from pages import ROOT, write_table
from scale_schedule import Facts, Span, facts, most_at_once, schedule

from bacs.benchmark import Cell, plan, read
from bacs.benchmark.sweep import order_cells

PAGE = "docs/scale.md"
RECIPE, IMAGES, MEMBERS = "imagenet-c", 50_000, 10
MACHINES = (1, 8, 64)
THREADS = 2  # of a cell that has a machine to itself: the cores of the machine that was measured
GIGABYTES = IMAGES * 224 * 224 * 3 / 1e9  # of a shift, as cells share it
DAY = 86_400


@cache
def cost() -> dict:
    return json.loads((ROOT / "results" / "scale" / "cost.json").read_text())


def cells() -> list[Cell]:
    """The whole sweep."""
    return plan(read(RECIPE))


def per_image(cell: Cell) -> float:
    """Seconds of one core that one member takes for one image: to adapt, and once more to predict."""
    if cell.protocol != "offline":
        raise ValueError(f"protocol must be 'offline', got {cell.protocol!r}")
    step = {method: turns["median"] for method, turns in cost()["seconds_per_image"].items()}
    return step["vanilla" if cell.method == "vanilla" else "bn"] + cell.epochs * step.get(cell.method, 0.0)


def seconds_of(cell: Cell, threads: int) -> float:
    """Of a whole cell; members are side by side on threads of their own."""
    return math.ceil(MEMBERS / threads) * IMAGES * per_image(cell)


def run_plan(order: Sequence[Cell], workers: int, threads: int) -> list[Span]:
    """The sweep in this order by workers that have so many cores each."""
    return schedule({cell.id: seconds_of(cell, threads) for cell in order}, workers)


def members_apart(order: Sequence[Cell], workers: int) -> Facts:
    """What the sweep would take if every member of a cell were a task of one core."""
    tasks = {f"{cell.id} {member}": IMAGES * per_image(cell) for cell in order for member in range(MEMBERS)}
    return facts(schedule(tasks, workers), workers)


def cost_table() -> list[str]:
    """Seconds per image and member, of a step and of a whole cell."""
    about, method_cells = cost(), {cell.method: cell for cell in cells()}
    forward, turns = about["seconds_per_image"]["vanilla"]["median"], about["seconds_per_image"]
    share = about["forward_gflop"] / forward / about["product_gflops"]
    machine = about["machine"]
    lines = [
        f"{machine['processor']}, torch {machine['torch']}, one thread, batches of {about['batch_size']}; "
        f"{about['date']}, load before {about['load_before']}. Products of matrices reached "
        f"{about['product_gflops']:.0f} GFLOP/s, and a forward pass, whose products are {about['forward_gflop']:.1f} "
        f"GFLOP, {share:.2f} of that.",
        "",
        "| method | a batch, per image | in forward passes | a cell, in forward passes | counted by the plan "
        "| a cell on one core |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for method, each in method_cells.items():
        median, least, greatest = (1000 * turns[method][name] for name in ("median", "least", "greatest"))
        lines.append(
            f"| {method} | {median:.0f} ms ({least:.0f} to {greatest:.0f}) | {median / 1000 / forward:.2f} "
            f"| {per_image(each) / forward:.2f} | {each.cost} | {seconds_of(each, 1) / 3600:.1f} h |"
        )
    return lines


def plan_table() -> list[str]:
    """Days of the whole sweep by machines, by the plan and by what it could be."""
    every = cells()
    core_days = sum(seconds_of(cell, 1) for cell in every) / DAY
    shifts = {cell.id: cell.shift for cell in every}
    lines = [
        f"{len(every)} cells, {core_days:.0f} days of one core.",
        "",
        "| machines | cells at a time | ideal | shift by shift | the plan | longest first | members apart "
        "| tail of the plan | images kept |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for machines in MACHINES:
        for threads in (1, THREADS):
            workers = machines * THREADS // threads
            spans = run_plan(order_cells(every, workers), workers, threads)
            found = facts(spans, workers)
            other = [order_cells(every, 1), sorted(every, key=lambda cell: -cell.cost)]
            shift_by_shift, longest = (facts(run_plan(order, workers, threads), workers) for order in other)
            apart = members_apart(order_cells(every, workers), machines * THREADS)
            kept = most_at_once(spans, shifts)
            lines.append(
                f"| {machines} | {workers}, {'a core' if threads == 1 else 'a machine'} each "
                f"| {found.ideal / DAY:.1f} days | {shift_by_shift.ratio:.3f} | **{found.ratio:.3f}** "
                f"| {longest.ratio:.3f} | {apart.ratio:.3f} | {found.tail / 3600:.0f} h | {kept * GIGABYTES:.0f} GB |"
            )
    return lines


def ray_table() -> list[str]:
    """The sweep that slept on Ray beside the same by the model, in seconds as they passed."""
    record = json.loads((ROOT / "results" / "scale" / "ray.json").read_text())
    machines, loss = record["machines"], {"lost": record["lost"], "lost_at": record["lost_at"]}
    tasks, before = (
        {cell.id: seconds_of(cell, THREADS) / record["divisor"] for cell in order_cells(cells(), workers)}
        for workers in (machines, 1)
    )
    spans = [Span(*span) for span in record["spans"]]
    model = facts(schedule(tasks, machines, **loss), machines, **loss)
    rows = {
        "Ray": facts(spans, machines, **loss)._replace(ideal=model.ideal),  # not by sleeps that lasted too long
        "model": model,
        "model, as it was before": facts(schedule(before, machines, **loss, again_last=True), machines, **loss),
        "model, nothing lost": facts(schedule(tasks, machines), machines),
    }
    broken = {span.task for span in spans if not span.finished}
    waited = [span.begin - record["lost_at"] for span in spans if span.finished and span.task in broken]
    return [
        f"{machines} machines, {record['lost']} of them lost after {record['lost_at']:.0f} s; a second stands for "
        f"{record['divisor']:,.0f}.",
        "",
        "| | ideal | took | ratio | tail | cells that were lost | work that was lost |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {name} | {row.ideal:.0f} s | {row.makespan:.0f} s | {row.ratio:.3f} | {row.tail:.0f} s | {row.lost} "
            f"| {row.lost_work:.0f} s |"
            for name, row in rows.items()
        ),
        "",
        f"{record['records']} records of {len(tasks)} cells. What was lost began again {min(waited):.0f} to "
        f"{max(waited):.0f} s after the loss.",
    ]


TABLES = {"cost": cost_table, "plan": plan_table, "ray": ray_table}


if __name__ == "__main__":
    for title, made in TABLES.items():
        write_table(PAGE, title, made())
