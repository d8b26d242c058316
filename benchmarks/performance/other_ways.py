"""Ways to run a step that one might expect to be faster, against the one that `bacs.stream` takes by itself.

As many members as cores, all weights, no posterior: one member after another with all threads; a process with one
thread for each member; through `torch.compile`; in bfloat16 by autocast, which runs members one after another; and
stacked, all members as one batched network by `torch.func`.
"""

import copy
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

import bacs
from bacs.types import Params
from benchmarks.performance import plain, setting
from benchmarks.performance.alternating import alternate, ratio


def stacked(models: list[nn.Module], *, learning_rate: float, momentum: float = 0.9) -> Callable[[Tensor], Params]:
    """A step of all models at once; their weights, which it returns, have one more axis, which torch.func maps over."""
    for model in models:
        plain.all_weights(model, learning_rate=learning_rate)  # batch norm of the batch at hand
    weights, buffers = stack_module_state(models)
    weights = {name: value.detach() for name, value in weights.items()}
    speed = {name: torch.zeros_like(value) for name, value in weights.items()}
    skeleton = copy.deepcopy(models[0]).to("meta")

    def entropy(weights, buffers, images):
        return plain.mean_entropy(functional_call(skeleton, (weights, buffers), (images,)))

    gradients = vmap(grad_and_value(entropy), in_dims=(0, 0, None))

    def step(images: Tensor) -> Params:
        found, _ = gradients(weights, buffers, images)
        order = list(weights)
        torch._foreach_mul_([speed[name] for name in order], momentum)
        torch._foreach_add_([speed[name] for name in order], [found[name] for name in order])
        torch._foreach_add_([weights[name] for name in order], [speed[name] for name in order], alpha=-learning_rate)
        return weights

    return step


def one_process(pipe, width: int, seed: int, batch: Tensor) -> None:
    """Steps a member of its own whenever the pipe says so."""
    torch.set_num_threads(1)
    stream = _stream(bacs.Ensemble([setting.member(width, seed)]))
    while pipe.recv():
        stream.step(batch)
        pipe.send("done")


@contextmanager
def processes(width: int, members: int, batch: Tensor) -> Iterator[Callable[[], object]]:
    """A step of all members, each in a process that stays."""
    context = multiprocessing.get_context("spawn")
    pipes = []
    for seed in range(members):
        here, there = context.Pipe()
        context.Process(target=one_process, args=(there, width, seed, batch), daemon=True).start()
        pipes.append(here)

    def step() -> list[str]:
        for pipe in pipes:
            pipe.send(True)
        return [pipe.recv() for pipe in pipes]

    try:
        yield step
    finally:
        for pipe in pipes:
            pipe.send(False)


def _stream(ensemble: bacs.Ensemble, *, compile: bool = False) -> bacs.Stream:
    return bacs.stream(ensemble, "bacs-no-posterior", learning_rate=setting.LEARNING_RATE, compile=compile)


def ways(ensemble: bacs.Ensemble, batch: Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    """The ways one after another, so that each holds memory only while it is measured."""
    alone = [_stream(bacs.Ensemble([member])) for member in ensemble.members]
    yield "one after another", lambda: [stream.step(batch) for stream in alone]
    del alone
    compiled = _stream(ensemble, compile=True)
    yield "compiled", lambda: compiled.step(batch)
    del compiled
    half = _stream(ensemble)

    def in_half() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            half.step(batch)

    yield "bfloat16", in_half
    del half
    models = [copy.deepcopy(member.model) for member in ensemble.members]
    together = stacked(models, learning_rate=setting.LEARNING_RATE)
    yield "stacked", lambda: together(batch)


def run(quick: bool) -> dict:
    members = setting.cores()
    batch = setting.images(8 if quick else setting.BATCH)
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        ensemble = setting.ensemble(width, members)
        usual = _stream(ensemble)
        row = {"width": width, "members": members, "threads": setting.cores()}

        def measure(way: str, step: Callable[[], object], usual=usual, row=row, width=width) -> None:
            sides = {"as it comes": lambda: usual.step(batch), way: step}
            seconds = alternate(sides, turns=2 if quick else 9 if width == 16 else 3)
            row[way] = ratio(seconds["as it comes"], seconds[way])._asdict()
            print(f"width {width}, {members} members: {way} {row[way]['median']:.3f} times as fast", flush=True)

        with setting.threads(setting.cores()):
            for way, step in ways(ensemble, batch):
                measure(way, step)
            with processes(width, members, batch) as step:
                measure("processes", step)
        rows.append(row)
    return {"batch": len(batch), "rows": rows}
