"""Tasks in an order, workers that each take the next one: when does everything end, and how long do workers wait?

A model of what the engines do, without their overhead: deterministic, so that plans can be compared.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """One attempt at one task, in seconds since the beginning."""

    task: str
    begin: float
    end: float
    finished: bool = True  # False: its worker was lost


class Facts(NamedTuple):
    """How a schedule went. Times are in the unit of its spans, and `ideal` is what no plan can better."""

    makespan: float
    ideal: float  # all tasks once, spread evenly over the workers that were there
    tail: float  # from the first worker that had nothing left to do until the end
    lost: int  # attempts that came to nothing
    lost_work: float

    @property
    def ratio(self) -> float:
        return self.makespan / self.ideal


def schedule(
    tasks: Mapping[str, float], workers: int, *, lost: int = 0, lost_at: float = 0.0, again_last: bool = False
) -> list[Span]:
    """Attempts at the tasks (name -> seconds) in their order, each by the worker that is free first.

    At the moment `lost_at` so many workers vanish; what they were at begins again before anything that waits, or
    after all of it.
    """
    if not 0 <= lost < workers:
        raise ValueError(f"lost must be at least 0 and below {workers} workers, got {lost}")
    done = _assign(list(tasks), tasks, [0.0] * workers)
    spans = [Span(task, begin, end) for task, begin, end, _ in done]
    if not lost:
        return spans
    begun = {task for task, begin, _, _ in done if begin < lost_at}
    broken = {task for task, _, end, worker in done if task in begun and worker >= workers - lost and end > lost_at}
    spans = [Span(s.task, s.begin, lost_at, False) if s.task in broken else s for s in spans if s.task in begun]
    free = [
        max([lost_at, *(end for task, _, end, worker in done if worker == each and task in begun)])
        for each in range(workers - lost)
    ]
    again, waiting = [task for task in tasks if task in broken], [task for task in tasks if task not in begun]
    rest = [*waiting, *again] if again_last else [*again, *waiting]
    return spans + [Span(task, begin, end) for task, begin, end, _ in _assign(rest, tasks, free)]


def facts(spans: Sequence[Span], workers: int, *, lost: int = 0, lost_at: float = 0.0) -> Facts:
    """What a schedule comes to, be it computed or seen."""
    done, broken = [s for s in spans if s.finished], [s for s in spans if not s.finished]
    work = sum(s.end - s.begin for s in done)
    ideal = work / workers
    if lost and ideal > lost_at:
        ideal = lost_at + (work - workers * lost_at) / (workers - lost)
    makespan = max(s.end for s in done)
    last_begin = max(s.begin for s in spans)
    first_idle = min(s.end for s in done if s.end > last_begin)
    lost_work = sum(s.end - s.begin for s in broken)
    return Facts(makespan, ideal, makespan - first_idle, len(broken), lost_work)


def most_at_once(spans: Sequence[Span], groups: Mapping[str, str]) -> int:
    """How many groups of tasks (task -> group) are open at the same time, from its first begin to its last end."""
    begins: dict[str, float] = {}
    ends: dict[str, float] = {}
    for span in spans:
        group = groups[span.task]
        begins[group] = min(span.begin, begins.get(group, span.begin))
        ends[group] = max(span.end, ends.get(group, span.end))
    return max(sum(begins[other] <= begin < ends[other] for other in begins) for begin in begins.values())


def _assign(
    order: Sequence[str], seconds: Mapping[str, float], free: Sequence[float]
) -> list[tuple[str, float, float, int]]:
    """Task, begin, end and worker of each task, by workers that are free from these moments on."""
    waiting = [(moment, worker) for worker, moment in enumerate(free)]
    heapq.heapify(waiting)
    done = []
    for task in order:
        begin, worker = heapq.heappop(waiting)
        done.append((task, begin, begin + seconds[task], worker))
        heapq.heappush(waiting, (begin + seconds[task], worker))
    return done
