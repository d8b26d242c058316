"""`bacs adapt`: predictions for a user's own pictures, adapted to them."""

import json as json_format
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tyro.conf import Positional

from bacs.cli.source import batch_size_for, check_save, check_settings, method_for, opened, unknown_size
from bacs.data import Pictures, pictures
from bacs.drivers import Comparison, compare
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember, Reader
from bacs.methods import METHODS, Stream
from bacs.methods.catalogue import find
from bacs.methods.settings import AGREEMENT, Settings, check_epochs
from bacs.predictions import posterior_deviations, summarise
from bacs.predictions.screen import lines
from bacs.predictions.table import tabulate
from bacs.predictions.writers import check_out, stage
from bacs.predictive import check_accuracy, check_coverage, join


def adapt(
    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")],
    images: Annotated[Positional[str], tyro.conf.arg(metavar="IMAGES")],
    *,
    out: Path,
    method: Annotated[str | None, tyro.conf.arg(metavar="|".join(METHODS))] = None,
    online: bool = False,
    save: Path | None = None,
    epochs: float = 1,
    batch_size: int | None = None,
    predict_batch_size: int | None = None,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    momentum: float = 0.9,
    optimizer: str = "sgd",
    objective: str | None = None,
    objective_temperature: float = 1.0,
    batch_weight: float | None = None,
    statistics: str = "source",
    view: str = "mirrored",
    temperature: float | Literal["agreement"] | None = None,
    seed: int = 0,
    device: str | None = None,
    size: tuple[int, int] | None = None,
    model: str | None = None,
    coverage: float | None = None,
    accuracy: float | None = None,
    probabilities: bool = False,
    strict: bool = False,
    overwrite: bool = False,
    json: bool = False,
) -> int:
    """Adapt an ensemble to unlabelled pictures and write what it predicts for each.

    Example: bacs adapt runs/cifar10 photos/ --out predictions.parquet

    Pictures that cannot be read are listed and left out, and the exit code is then 1. docs/adapt.md explains the
    columns and the summary.

    Args:
        run: A saved ensemble or stream, or the folder of a training run.
        images: A folder, a glob in quotes, a picture, or a .npy, .npz, .safetensors or .parquet file.
        out: The table to write: .parquet, .csv or .jsonl.
        method: auto, which decides without labels how far to adapt, unless you say what adapts: nothing (vanilla),
            batch statistics (bn), or weights too.
        online: Follow the images in their order, in one pass; else adapt to all of them first.
        save: Also keep the adapted ensemble (online: the stream) in this folder.
        epochs: Passes over the images that adapt (offline); 0.5 adapts to half of them.
        batch_size: Images a step, and of each batch statistic: by default 64 with auto, else 128; a saved stream
            goes on with its own.
        predict_batch_size: Images of each batch that is predicted (offline), if not those of a step.
        learning_rate: Of each step.
        posterior_weight: The paper's beta: how strongly the posterior holds the weights.
        momentum: Of the optimiser.
        optimizer: sgd or adam.
        objective: entropy, information_maximisation, consistency, ensemble_teacher, or a sum such as
            "entropy + 0.5 * consistency"; by default the method's own.
        objective_temperature: Above 1, networks that are too sure of themselves have something to descend.
        batch_weight: Share of the batch in batch norm's statistics, 0 (source) to 1; by default the method's own.
        statistics: What the other share comes from: source, or running averages that follow the images; accumulated
            gathers statistics over all images for the predictions (offline).
        view: Second view of objectives that compare two: mirrored or shifted.
        temperature: Of the predictions; agreement chooses it without labels, by default it is the ensemble's own.
        seed: Order of the images (offline).
        device: cpu or cuda; by default cpu, for a saved stream where it ran.
        size: Height and width that the model takes, if the checkpoint does not say.
        model: Import path of a class that bacs does not know, such as package.module:Class.
        coverage: Share of the images to answer for, 0.9 if not given; the least confident others are flagged in the
            column abstain.
        accuracy: Flag as many as it takes for the others to reach this accuracy, by estimate (auto, or temperature
            agreement).
        probabilities: Also write the probability of every class.
        strict: Stop at the first picture that cannot be read, before anything is written.
        overwrite: Replace an existing table, or the ensemble in the folder that save names.
        json: Print the summary as JSON.
    """
    method = method_for(run) if method is None else find(method)[0]
    settings = Settings(
        learning_rate=learning_rate,
        posterior_weight=posterior_weight,
        momentum=momentum,
        optimizer=optimizer,
        objective=objective,
        objective_temperature=objective_temperature,
        batch_weight=batch_weight,
        statistics=statistics,
        view=view,
        temperature=temperature,
    )
    check_settings(method, settings)
    check_epochs(epochs)
    if online and epochs != 1:
        raise ValueError(f"epochs must be 1 with online: one pass both adapts and predicts, got {epochs}")
    if online and predict_batch_size is not None:
        raise ValueError("predict_batch_size must be left out with online: one pass both adapts and predicts")
    for name, images_each in (("batch_size", batch_size), ("predict_batch_size", predict_batch_size)):
        if images_each is not None and images_each < 1:
            raise ValueError(f"{name} must be at least 1, got {images_each}")
    honest = METHODS[method].chooses or temperature == AGREEMENT
    check_abstaining(coverage, accuracy, honest=honest)
    check_out(out, overwrite=overwrite)
    check_save(save, run, overwrite=overwrite)
    console = Console(stderr=True)
    try:
        source = opened(run, method, settings, online=online, device=device, size=size, model=model)
        ensemble = source.source if isinstance(source, Stream) else source
        batch_size = batch_size or batch_size_for(method, source)
        predicting = predict_batch_size or batch_size
        if isinstance(source, Stream):
            source.batch_size = batch_size
        if accuracy is not None and len(ensemble) < 2:
            raise ValueError("accuracy must be left out for a single network: it has nobody to agree with")
        if note := unknown_size(run, ensemble):
            print(note, file=sys.stderr)
        with bars(console) as progress:
            found = read(images, ensemble, strict=strict, progress=progress)
            outcome = predicted(
                source,
                found,
                method,
                settings,
                epochs=epochs,
                batch_size=batch_size,
                predict_batch_size=predicting,
                seed=seed,
                progress=progress,
            )
        flagging = {"coverage": 0.9 if coverage is None else coverage, "accuracy": accuracy}
        table = tabulate(
            outcome.after, index=found.index, paths=found.paths, class_names=ensemble.class_names, **flagging
        )
        # Both or neither: a second try finds nothing in its way.
        with stage(out, table.columns(probabilities=probabilities), overwrite=overwrite):
            if save is not None:
                outcome.adapted.save(save)
    except KeyboardInterrupt:
        console.print("\nStopped. The same command begins anew; an existing table was left as it was.", highlight=False)
        return 130
    moved = [posterior_deviations(member, METHODS[method].adapts) for member in outcome.adapted.members]
    chosen = settings.of(METHODS[method])
    how = {"method": method, "batch_size": predicting, "batch_weight": chosen.batch_weight, "honest": honest}
    summary = summarise(ensemble, outcome.before, outcome.after, moved, **how)
    reasons = decisions(outcome.adapted)
    temperature = outcome.adapted.temperature
    for path, reason in found.failures:
        print(f"skipped {path}: {reason}", file=sys.stderr)
    protocol = "online" if online else "offline"
    if json:
        about = {"out": str(out), "save": None if save is None else str(save), "method": method, "protocol": protocol}
        skipped = [failure._asdict() for failure in found.failures]
        counts = {"members": len(ensemble), "ignored": found.ignored, **flagging}
        counts |= {"settings": chosen.as_json(), "temperature": temperature, "reasons": reasons}
        abstained = {"abstained": int(table.abstain.sum()), "skipped": skipped}
        print(json_format.dumps(about | counts | abstained | summary.as_json()))
    else:
        warmth = "" if temperature == 1 else f", temperature: {temperature:.3g}"
        print(f"{method}, {protocol}, members: {len(ensemble)}{warmth}")
        print("\n".join([*(f"  {reason}" for reason in reasons), *lines(summary, table, found)]))
        print(f"table: {out}" + ("" if save is None else f"\nadapted: {save}"))
    return 1 if found.failures else 0


@contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Progress bars, with the library's own warnings held back: the summary has them."""
    logger = logging.getLogger("bacs.methods")
    level = logger.level
    logger.setLevel(logging.ERROR)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        with Progress(*columns, console=console) as progress:
            yield progress
    finally:
        logger.setLevel(level)


def decisions(adapted: Ensemble | Stream) -> list[str]:
    """What was chosen and why; of a stream the last three times."""
    if isinstance(adapted, Stream):
        return [f"after step {event.step}: {event.reason}" for event in adapted.history[-3:] if event.reason]
    return (adapted.adaptation or {}).get("reasons", [])


def check_abstaining(coverage: float | None, accuracy: float | None, *, honest: bool) -> None:
    """Raises for wishes that contradict each other, or that ask for more than the probabilities say."""
    if coverage is not None:
        check_coverage(coverage)
    if accuracy is None:
        return
    check_accuracy(accuracy)
    if coverage is not None:
        raise ValueError("coverage must be left out with accuracy, which decides how many images are answered for")
    if not honest:
        raise ValueError(
            "accuracy needs probabilities that agreement made honest: method auto, or temperature agreement"
        )


def read(source: str, ensemble: Ensemble, *, strict: bool, progress: Progress) -> Pictures:
    """The user's images, at the size of each member."""
    task = progress.add_task("reading pictures", total=None)
    return pictures(
        source,
        *(member.preprocessing for member in ensemble.members),
        strict=strict,
        on_picture=lambda done, total: progress.update(task, advance=done, total=total),
    )


def predicted(
    source: Ensemble | Stream,
    found: Pictures,
    method: str,
    settings: Settings,
    *,
    epochs: int | float,
    batch_size: int,
    predict_batch_size: int,
    seed: int,
    progress: Progress,
) -> Comparison:
    """Predictions before and after, and what was adapted."""
    ensemble = source.source if isinstance(source, Stream) else source
    protocol = "online" if isinstance(source, Stream) else "offline"
    passes = 1 + METHODS[method].passes(protocol, epochs)  # one more for the predictions before
    task = progress.add_task("images x members x passes", total=passes * len(found.views) * len(found))
    shared: dict[str, Any] = {"seed": seed, "on_batch": lambda count: progress.advance(task, count)}
    views = PerMember(found.views)
    if not isinstance(source, Stream):
        how: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "predict_batch_size": predict_batch_size}
        return compare(ensemble, views, method, settings, **how, **shared)
    before = ensemble.predictive(views, batch_size=predict_batch_size, **shared)
    parts = []
    for _, batches in Reader(views, batch_size, seed=None).batches():
        parts.append(source.step_predictive(PerMember(batches)))
        shared["on_batch"](sum(map(len, batches)))
    return Comparison(before, join(parts), source)
