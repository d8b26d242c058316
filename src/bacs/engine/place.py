"""Where the members of a training run and the cells of a sweep are computed."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch

from bacs.engine import ray
from bacs.engine.held import Held, LocalValue
from bacs.engine.jobs import run
from bacs.engine.outcome import Outcome
from bacs.errors import RunError

MOST_THREADS = 1024


@dataclass(frozen=True)
class Place:
    """Machines, processes and devices for independent jobs."""

    engine: Literal["local", "ray"] = "local"
    """Processes on this machine, or a Ray cluster."""
    workers: int | None = None
    """Jobs that run at the same time on this machine; by default one for every core, or every GPU."""
    threads: int = 1
    """Threads of each job. With 1, results agree bit for bit; more are slow on a machine that others use too."""
    address: str | None = None
    """Address of the Ray cluster; without one, a running cluster is taken, else one is started here."""
    device: str = "cpu"
    """cpu or cuda; jobs are spread over the GPUs of this machine."""

    def check(self) -> None:
        """Raises, before any work is done, for numbers and devices that cannot be."""
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        check_threads(self.threads)
        if self.address is not None and self.engine != "ray":
            raise ValueError(f"address must be left out without engine ray, got {self.address}")
        try:
            kind = torch.device(self.device).type
        except RuntimeError:
            raise ValueError(f"device must be cpu or cuda, got {self.device!r}") from None
        if kind == "cuda" and self.engine == "local" and not torch.cuda.is_available():
            raise RunError(f"device {self.device!r} is not available: it needs a GPU and a torch built for CUDA")

    def device_of(self, turn: int) -> str:
        """The device of one job after another. Ray gives each job a GPU of its own."""
        gpus = self._gpus()
        return f"cuda:{turn % gpus}" if gpus else self.device

    def capacity(self) -> int:
        """How many jobs can run at the same time; on a cluster, while connected, by the machines that it has now."""
        if self.engine == "ray":
            return ray.capacity(threads=self.threads, gpus=self._gpus_of_a_job())
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.workers or self._gpus() or cores

    def connect(self) -> AbstractContextManager[Any]:
        """One connection to the cluster for all that is held and run in the block."""
        return ray.connect(self.address) if self.engine == "ray" else nullcontext()

    def hold(self, value: Any) -> Held:
        """The value for many jobs, while it is connected."""
        return ray.hold(value) if self.engine == "ray" else LocalValue(value)

    def run(
        self,
        function: Callable[[Any], Any],
        jobs: Sequence[Any],
        *,
        on_result: Callable[[Outcome], None] = lambda outcome: None,
    ) -> list[Any]:
        """`bacs.engine.run` here."""
        return run(
            function,
            jobs,
            engine=self.engine,
            workers=1 if self.engine == "ray" else max(1, min(self.capacity(), len(jobs))),
            threads=self.threads,
            gpus=self._gpus_of_a_job(),
            address=self.address,
            on_result=on_result,
        )

    def _gpus_of_a_job(self) -> int:
        """What Ray reserves."""
        return 1 if self.device.startswith("cuda") else 0

    def _gpus(self) -> int:
        """How many GPUs of this machine jobs are spread over."""
        kind = torch.device(self.device)
        spread = kind.type == "cuda" and kind.index is None and self.engine == "local"
        return torch.cuda.device_count() if spread else 0


def check_threads(threads: int) -> None:
    """Raises for what torch cannot begin: with too many it would end the process without a word."""
    if not 1 <= threads <= MOST_THREADS:
        rule = "at least 1" if threads < 1 else f"at most {MOST_THREADS}"
        raise ValueError(f"threads must be {rule}, got {threads}")


HERE = Place()
"""This machine, one job for every core."""
