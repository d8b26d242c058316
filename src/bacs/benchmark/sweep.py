"""`sweep`: the cells of a recipe on this machine or a cluster, each stored as it is finished."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from bacs import data
from bacs.benchmark import images, run_checksum, store
from bacs.benchmark.cell import Cell
from bacs.benchmark.measure import CellJob, describe_failure, run_cell
from bacs.benchmark.plan import plan
from bacs.benchmark.progress import show_progress
from bacs.benchmark.recipe import Recipe
from bacs.data.locate import data_root
from bacs.engine import HERE, Outcome, Place
from bacs.errors import DataError, RunError


class SweepSummary(NamedTuple):
    cells: int  # that were asked for
    skipped: int  # finished before
    finished: int  # now
    failed: dict[str, str]  # id -> error


def sweep(recipe: Recipe, run: str | Path, out: str | Path, **options: Any) -> SweepSummary:
    """How it went; `bacs.benchmark.records(out)` has the records themselves, at any time. Options as in `run_cells`."""
    return run_cells(plan(recipe), about(recipe.as_json(), Path(run)), Path(run), Path(out), **options)


def about(recipe: Mapping[str, Any], run: Path, kind: str = "sweep") -> dict[str, Any]:
    """What a folder's manifest says: the recipe as it was resolved, and the run."""
    return {"kind": kind, "recipe": json.loads(json.dumps(recipe)), "run": run_checksum.identify_run(run)}


def run_cells(
    cells: Sequence[Cell],
    about: Mapping[str, Any],
    run: Path,
    out: Path,
    *,
    varied: Sequence[str] = (),
    place: Place = HERE,
    data_dir: str | Path | None = None,
    download: bool = False,
    compile: bool = False,
    console: Console | None = None,
) -> SweepSummary:
    """Runs the cells that have no record yet. Calling again with the same arguments is how a sweep is resumed.

    A cell that fails is stored with its error, does not stop the others, and is tried again by the next call.

    Args:
        varied: settings in which records of one method may differ.
        place: where cells run, each as a job of its own.
        download: fetch data sets that are missing.
        compile: adapt through `torch.compile`.
    """
    place.check()
    root = data_root(data_dir)
    finished = set(store.check(out, about, cells, varied=varied))
    todo = [cell for cell in cells if cell.id not in finished]
    if todo:
        check_shifts(todo, run, about["run"]["sha256"], root, download=download)
    connection = place.connect() if todo else nullcontext()
    with store.lock_folder(out), store.working_folder(out) as working, connection:
        store.begin(out, about)
        for cell in cells:
            if cell.id in finished:  # and the sweep was killed before it could tidy up
                store.forget_stream(out, cell)
        places = out.absolute(), working.absolute(), run.absolute()
        jobs = [
            CellJob(cell, *places, dict(about["run"]), root.absolute(), place.device_of(turn), compile)
            for turn, cell in enumerate(order_cells(todo, place.capacity()) if todo else ())
        ]
        errors = _run(jobs, place, console or Console(stderr=True))
    return SweepSummary(len(cells), len(cells) - len(todo), len(todo) - len(errors), errors)


def order_cells(cells: Sequence[Cell], workers: int) -> list[Cell]:
    """Shift by shift, to keep few images at a time; of one shift the longest first, to let workers end together.

    The last shifts count as one, as many as have a cell for every worker: a long cell of the last one would otherwise
    begin when most workers have nothing left to do. It keeps no more images than workers that are busy do anyway.
    """
    turns = {shift: turn for turn, shift in enumerate(dict.fromkeys(cell.shift for cell in cells))}
    last = sorted(turns[cell.shift] for cell in cells)[-workers:][0]
    return sorted(cells, key=lambda cell: (min(turns[cell.shift], last), -cell.cost))


def check_shifts(cells: Sequence[Cell], run: Path, sha256: str, root: Path, *, download: bool) -> None:
    """Raises before any work is done if no shift has its data, or the run and the data do not fit.

    One shift that can be read is enough to begin: what is wrong with others becomes the error of their cells.
    """
    ensemble, problem = run_checksum.open_unchanged(run, sha256), None
    seeds = {name: cell.seed for cell in cells for name in cell.shifts}
    for name, seed in seeds.items():
        try:
            shift = data.shift(name, data_dir=root, seed=seed, limit=2, download=download)
        except DataError as error:
            problem = problem or error
            continue
        outputs = ensemble.predict(shift.images).shape[1]
        given = len(shift.classes)
        if given > outputs or (given < outputs and not Path(name).expanduser().exists()):
            raise RunError(f"{run} tells {outputs} classes apart and {name} has {given}: is it the right run?")
        if not download:
            return
        problem = None
    if problem is not None:
        raise problem


def _run(jobs: Sequence[CellJob], place: Place, console: Console) -> dict[str, str]:
    """Errors by cell, after all jobs have come to an end."""
    if not jobs:
        return {}
    working = jobs[0].working
    waiting = Counter(name for job in jobs for name in set(job.cell.shifts))
    errors: dict[str, str] = {}
    ended = 0

    def on_result(outcome: Outcome) -> None:
        nonlocal ended
        job, failure = jobs[outcome.index], outcome.value
        if outcome.error is not None:  # its process died again and again, or could not store the record
            failure = describe_failure(job, outcome.error)
        if failure is not None:
            store.write(job.out, failure)
            errors[job.cell.id] = failure["error"]
        ended += 1
        progress.finish(job.cell, errors.get(job.cell.id))
        for name in set(job.cell.shifts):
            waiting[name] -= 1
            if not waiting[name]:
                shutil.rmtree(images.folder(working, name), ignore_errors=True)

    with show_progress(working, [job.cell for job in jobs], console) as progress:
        try:
            place.run(run_cell, jobs, on_result=on_result)
        except RunError:
            if ended < len(jobs):  # not the failure of a cell, which has its record
                raise
    return errors
