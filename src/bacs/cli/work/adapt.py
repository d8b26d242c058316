"""The work of `bacs adapt`: check what is asked for, open, read, adapt, write, and tell."""

import json as json_format
import sys
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console

from bacs.cli import INCOMPLETE
from bacs.cli.adapt import Wishes
from bacs.cli.progress import bars
from bacs.cli.runs import batch_size_for, open_run, size_warning
from bacs.cli.settings import check_accuracy_of, check_wishes, method_of, name_unused, settings_of
from bacs.cli.work.online import run_lasting
from bacs.data import Pictures, pictures
from bacs.drivers import BeforeAndAfter, compare, spread
from bacs.engine import Place
from bacs.ensemble import Ensemble
from bacs.inputs import PerMember, Reader
from bacs.methods import METHODS, Stream
from bacs.methods.settings import AGREEMENT, Settings
from bacs.models import classes_of
from bacs.predictions import posterior_deviations, summarise
from bacs.predictions.labels import Truth, read_truth
from bacs.predictions.screen import lines
from bacs.predictions.table import Table, tabulate
from bacs.predictions.writers import stage
from bacs.predictive import join


def run(w: Wishes) -> int:
    """The exit code."""
    method = method_of(w)
    settings, w = settings_of(w, method)
    check_wishes(w, method, settings)
    if w.threads is not None:
        torch.set_num_threads(w.threads)
    if w.state is not None:
        return run_lasting(w, method, settings)
    console = Console(stderr=True)
    try:
        given = settings
        source, settings = open_run(w, method, given)
        ensemble = source.source if isinstance(source, Stream) else source
        w = replace(w, batch_size=w.batch_size or batch_size_for(method, source))
        if isinstance(source, Stream):
            source.batch_size = w.batch_size
        check_accuracy_of(ensemble, w.accuracy)
        for note in (size_warning(w.run, ensemble), name_unused(w, method, given)):
            if note is not None:
                print(note, file=sys.stderr)
        if w.dry_run:
            return rehearse(w, method, ensemble)
        place = Place(w.engine, threads=w.threads or 1, address=w.address, device=w.device or "cpu")
        with place.connect(), bars(console) as progress:
            found = read_pictures(w, ensemble, progress)
            truth = None if w.labels is None else truth_of(w.labels, found, ensemble)
            outcome = predict_both(w, place, source, found, method, settings, progress)
        table = make_table(w, outcome, found, ensemble)
        scores = None if truth is None else truth.scores(outcome.before, outcome.after)
        # Both are written or neither: a table that is there would be in the way of a second try.
        with stage(w.out, table.columns(probabilities=w.probabilities), overwrite=w.overwrite):
            if w.save is not None:
                outcome.adapted.save(w.save)
    except KeyboardInterrupt:
        console.print("\nStopped. The same command begins anew; an existing table was left as it was.", highlight=False)
        return 130
    for path, reason in found.failures:
        print(f"skipped {path}: {reason}", file=sys.stderr)
    tell(w, method, settings, ensemble, outcome, table, found, scores)
    return INCOMPLETE if found.failures else 0


def read_pictures(w: Wishes, ensemble: Ensemble, progress: Any) -> Pictures:
    """The user's images, at the size of each member."""
    step = progress.step("reading pictures")
    return pictures(
        w.images,
        *(member.preprocessing for member in ensemble.members),
        strict=w.strict,
        limit=w.limit,
        on_picture=lambda done, total: step(done, total),
    )


def truth_of(labels: str, found: Pictures, ensemble: Ensemble) -> Truth:
    return read_truth(labels, found, ensemble.class_names, classes_of(ensemble.members[0].model))


def predict_both(
    w: Wishes,
    place: Place,
    source: Ensemble | Stream,
    found: Pictures,
    method: str,
    settings: Settings,
    progress: Any,
) -> BeforeAndAfter:
    """Predictions before and after, and what was adapted."""
    ensemble = source.source if isinstance(source, Stream) else source
    protocol = "online" if isinstance(source, Stream) else "offline"
    passes = 1 + METHODS[method].passes(protocol, w.epochs)  # one more for the predictions before
    total = passes * len(found.views) * len(found)
    step = progress.step(f"adapting to {len(found):,} images (members: {len(ensemble)})")
    assert w.batch_size is not None
    predicting = w.predict_batch_size or w.batch_size
    shared: dict[str, Any] = {"seed": w.seed, "on_batch": lambda count: step(count, total)}
    views = PerMember(found.views)
    if not isinstance(source, Stream):
        how: dict[str, Any] = {"epochs": w.epochs, "batch_size": w.batch_size, "predict_batch_size": predicting}
        if place.engine == "ray":
            return spread.compare(place, ensemble, views, method, settings, **how, **shared)
        return compare(ensemble, views, method, settings, **how, **shared)
    before = ensemble.predictive(views, batch_size=predicting, **shared)
    parts = []
    for _, batches in Reader(views, w.batch_size, seed=None).batches():
        parts.append(source.step_predictive(PerMember(batches)))
        shared["on_batch"](sum(map(len, batches)))
    return BeforeAndAfter(before, join(parts), source)


def make_table(w: Wishes, outcome: BeforeAndAfter, found: Pictures, ensemble: Ensemble) -> Table:
    return tabulate(
        outcome.after,
        before=outcome.before,
        index=found.index,
        paths=found.paths,
        class_names=ensemble.class_names,
        coverage=0.9 if w.coverage is None else w.coverage,
        accuracy=w.accuracy,
    )


def tell(
    w: Wishes,
    method: str,
    settings: Settings,
    ensemble: Ensemble,
    outcome: BeforeAndAfter,
    table: Table,
    found: Pictures,
    scores: dict[str, Any] | None,
) -> None:
    """Prints what was done and what came of it."""
    moved = [posterior_deviations(member, METHODS[method].adapts) for member in outcome.adapted.members]
    chosen = settings.of(METHODS[method])
    honest = METHODS[method].chooses or settings.temperature == AGREEMENT
    predicting = w.predict_batch_size or w.batch_size
    assert predicting is not None
    how: dict[str, Any] = {"method": method, "batch_size": predicting, "batch_weight": chosen.batch_weight}
    summary = summarise(ensemble, outcome.before, outcome.after, moved, **how, honest=honest, in_order=w.online)
    reasons, warmth = decisions(outcome.adapted), outcome.adapted.temperature
    protocol = "online" if w.online else "offline"
    if w.json:
        about = {"out": str(w.out), "save": None if w.save is None else str(w.save), "method": method}
        counts = {"protocol": protocol, "members": len(ensemble), "ignored": found.ignored}
        counts |= {"coverage": 0.9 if w.coverage is None else w.coverage, "accuracy": w.accuracy}
        counts |= {"settings": chosen.as_json(), "temperature": warmth, "reasons": reasons, "scores": scores}
        skipped = [failure._asdict() for failure in found.failures]
        flagged = {"abstained": int(table.abstain.sum()), "skipped": skipped}
        print(json_format.dumps(about | counts | flagged | summary.as_json()))
        return
    words = [method, protocol, f"members: {len(ensemble)}"]
    if abs(warmth - 1) >= 0.005:
        words.append(f"temperature: {warmth:.3g}")
    row = METHODS[method]
    if "posterior_weight" in row.uses and chosen.posterior_weight != Settings().posterior_weight:
        words.append(f"posterior_weight: {chosen.posterior_weight:.3g}")
    print(", ".join(words))
    print("\n".join([*(f"  {reason}" for reason in reasons), *lines(summary, table, found)]))
    if scores is not None:
        for when in ("before", "after"):
            print(f"{when:<6} by {scores['images']} labels: {spell_scores(scores[when])}")
    print(f"table: {w.out}" + ("" if w.save is None else f"\nadapted: {w.save}"))


def spell_scores(scores: dict[str, float]) -> str:
    return f"accuracy {100 * scores['accuracy']:.1f} %, NLL {scores['nll']:.3f}, ECE {scores['ece']:.3f}"


def decisions(adapted: Ensemble | Stream) -> list[str]:
    """What was chosen and why; of a stream the last three times."""
    if isinstance(adapted, Stream):
        return [f"after step {event.step}: {event.reason}" for event in adapted.history[-3:] if event.reason]
    return (adapted.adaptation or {}).get("reasons", [])


def rehearse(w: Wishes, method: str, ensemble: Ensemble) -> int:
    """Says what would be done."""
    from bacs.data.listing import list_all

    found = list_all(w.images)
    count = found.count if w.limit is None else min(w.limit, found.count)
    protocol = "online" if w.online else "offline"
    print(f"{method}, {protocol}, members: {len(ensemble)}, batches of {w.batch_size}")
    print(f"images: {count}" + (f", other files in the folders: {found.ignored}" if found.ignored else ""))
    print(f"would write: {w.out}" + ("" if w.save is None else f" and {w.save}"))
    return 0
