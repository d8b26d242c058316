"""Jobs one after another in this process."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch

from bacs.engine.outcome import Outcome, attempt


def outcomes(function: Callable[[Any], Any], jobs: Sequence[Any], *, threads: int) -> Generator[Outcome, None, None]:
    """The outcome of every job in order; torch has its own number of threads again afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for index, job in enumerate(jobs):
            yield Outcome(index, *attempt(function, job), attempts=1)
    finally:
        torch.set_num_threads(before)
