"""`bacs adapt`: predictions for a user's own pictures, adapted to them.

What is asked for is here, and imports nothing that is slow; the work is in `bacs.cli.work`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from bacs.cli.arguments import Flag, takes

METHODS = ("auto", "vanilla", "bn", "tent", "bacs", "bacs-no-posterior")


@dataclass(frozen=True)
class Wishes:
    """What to adapt to what, and how.

    Args:
        run: A saved ensemble or stream, the folder of a training run, or a weight file together with --model, --mean
            and --std.
        images: Folders, globs and pictures, or one .npy, .npz, .safetensors or .parquet file; with --state also -, for
            paths from standard input, one per line.
        out: The table to write: .parquet, .csv or .jsonl.
        method: auto, which decides without labels how far to adapt, unless you say what adapts: nothing (vanilla),
            batch statistics (bn), or weights too.
        online: Follow the images in their order, in one pass; else adapt to all of them first.
        state: Folder that keeps the stream (online): rows are written as they come, a batch of pictures is in memory
            at a time, and the same command goes on after any end, kill -9 included. docs/streams.md has more.
        save_every: Batches from one saved state to the next: what a kill makes it do again.
        follow: Wait for more pictures to come into the folder (with state), until Ctrl-C or SIGTERM.
        save: Also keep the adapted ensemble (online: the stream) in this folder.
        settings: TOML file with the settings of the method, such as the chosen.toml of bacs tune.
        epochs: Passes over the images that adapt (offline); 0.5 adapts to half of them.
        batch_size: Images per step, and of each batch statistic: by default 64 with auto, else 128; a saved stream
            goes on with its own.
        predict_batch_size: Images of each batch that is predicted (offline), if not those of a step.
        learning_rate: Of each step.
        posterior_weight: How strongly the posterior holds the weights: the paper's beta, relative to the scale that
            each member has (bacs info shows it).
        momentum: Of the optimiser.
        optimizer: sgd or adam.
        objective: entropy, information_maximisation, consistency, ensemble_teacher, or a sum of these, such as
            entropy + 0.5 * consistency in quotes; by default the method's own.
        objective_temperature: Above 1, networks that are too sure of themselves have something to descend.
        batch_weight: Share of the batch in batch norm's statistics, 0 (source) to 1; by default the method's own.
        statistics: What the other share comes from: source, or running averages that follow the images; accumulated
            gathers statistics over all images for the predictions (offline).
        view: Second view of objectives that compare two: mirrored or shifted.
        temperature: Of the predictions; agreement chooses it without labels, by default it is the ensemble's own.
        reset_every: Steps after which weights, statistics and the optimiser go back to their start (online); by default
            never.
        seed: Order of the images (offline).
        device: cpu or cuda; by default cpu, for a saved stream where it ran.
        threads: Of the processor; by default all cores. With Ray those of each task, by default one.
        engine: This machine, or a Ray cluster for folders that outgrow it (offline): each member adapts as a task of
            its own, and predictions are made in parts. The rows are the same.
        address: Address of the Ray cluster; without one, a running cluster is taken, else one is started here.
        size: Height and width that the model takes, if the checkpoint does not say.
        model: Import path of a class that bacs does not know, such as package.module:Class; of a weight file its model,
            a name in bacs.models or an import path.
        model_arguments: For a weight file, such as depth=20 classes=10.
        mean: For a weight file, of each channel on the scale 0..1.
        std: For a weight file, of each channel.
        classes: The only classes that can occur, by name or number, such as cat dog.
        labels: The truth, to score predictions by: a .csv with the columns path (or index) and label, a .npy of class
            numbers in the order of the images, or the word folders, if pictures lie in folders named by class.
        limit: Take the first so many images only.
        coverage: Share of the images to answer for, 0.9 if not given; the least confident others are flagged in the
            column abstain.
        accuracy: Flag as many as it takes for the others to reach this accuracy, by estimate (auto, or temperature
            agreement).
        probabilities: Also write the probability of every class.
        strict: Stop at the first picture that cannot be read, before anything is written.
        overwrite: Replace an existing table, or the ensemble in the folder that --save names.
        dry_run: Say what would be done, and do nothing.
        json: Print the summary as JSON.
    """

    run: Annotated[Positional[Path], takes("RUN")]
    images: Annotated[Positional[tuple[str, ...]], takes("IMAGES ...", required=True)]
    out: Annotated[Path, takes("FILE")]
    method: Annotated[str | None, takes("|".join(METHODS))] = None
    online: Flag = False
    state: Annotated[Path | None, takes("DIR")] = None
    save_every: Annotated[int, takes("N")] = 50
    follow: Flag = False
    save: Annotated[Path | None, takes("DIR")] = None
    settings: Annotated[Path | None, takes("FILE")] = None
    epochs: float = 1
    batch_size: Annotated[int | None, takes("N")] = None
    predict_batch_size: Annotated[int | None, takes("N")] = None
    learning_rate: float = 1e-3
    posterior_weight: float = 1e-4
    momentum: float = 0.9
    optimizer: Annotated[str, takes("sgd|adam")] = "sgd"
    objective: Annotated[str | None, takes("NAME|SUM")] = None
    objective_temperature: float = 1.0
    batch_weight: Annotated[float | None, takes("SHARE")] = None
    statistics: Annotated[str, takes("source|running|accumulated")] = "source"
    view: Annotated[str, takes("mirrored|shifted")] = "mirrored"
    temperature: Annotated[float | Literal["agreement"] | None, takes("NUMBER|agreement")] = None
    reset_every: Annotated[int | None, takes("N")] = None
    seed: int = 0
    device: Annotated[str | None, takes("cpu|cuda")] = None
    threads: Annotated[int | None, takes("N")] = None
    engine: Literal["local", "ray"] = "local"
    address: Annotated[str | None, takes("HOST:PORT")] = None
    size: Annotated[tuple[int, int] | None, takes("HEIGHT WIDTH")] = None
    model: Annotated[str | None, takes("NAME|MODULE:CLASS")] = None
    model_arguments: Annotated[tuple[str, ...], takes("NAME=VALUE ...")] = ()
    mean: Annotated[tuple[float, ...], takes("NUMBER ...")] = ()
    std: Annotated[tuple[float, ...], takes("NUMBER ...")] = ()
    classes: Annotated[tuple[str, ...], takes("NAME ...")] = ()
    labels: Annotated[str | None, takes("FILE|folders")] = None
    limit: Annotated[int | None, takes("N")] = None
    coverage: Annotated[float | None, takes("SHARE")] = None
    accuracy: Annotated[float | None, takes("SHARE")] = None
    probabilities: Flag = False
    strict: Flag = False
    overwrite: Flag = False
    dry_run: Flag = False
    json: Flag = False


def adapt(wishes: Annotated[Wishes, tyro.conf.arg(name="")]) -> int:
    """Adapt an ensemble to unlabelled pictures and write what it predicts for each.

    Example: bacs adapt runs/cifar10 photos/ --out predictions.parquet

    Pictures that cannot be read are listed and left out, and the exit code is then 3. docs/adapt.md explains the
    columns and the summary.
    """
    from bacs.cli.work.adapt import run

    return run(wishes)
