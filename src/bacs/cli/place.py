"""Where the jobs of a verb are computed, as its flags say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from bacs.cli.arguments import takes

if TYPE_CHECKING:
    from bacs.engine import Place


@dataclass(frozen=True)
class Where:
    """Machines, processes and devices for independent jobs.

    Attributes:
        engine: Processes on this machine, or a Ray cluster.
        workers: Jobs that run at the same time on this machine; by default one for every core, or every GPU.
        threads: Threads of each job. With 1, results agree bit for bit; more are slow on a machine that others use too.
        address: Address of the Ray cluster; without one, a running cluster is taken, else one is started here.
        device: cpu or cuda; jobs are spread over the GPUs of this machine.
    """

    engine: Literal["local", "ray"] = "local"
    workers: Annotated[int | None, takes("N")] = None
    threads: int = 1
    address: Annotated[str | None, takes("HOST:PORT")] = None
    device: Annotated[str, takes("cpu|cuda")] = "cpu"

    def place(self) -> "Place":
        """The same for the engine."""
        from bacs.engine import Place

        return Place(self.engine, self.workers, self.threads, self.address, self.device)


HERE = Where()
"""This machine, one job for every core."""
