"""What became of one job."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from bacs.errors import RunError


class Outcome(NamedTuple):
    index: int  # of the job, in the order they were given
    value: Any
    error: Exception | None
    attempts: int  # how often it was started


def attempt(function: Callable[[Any], Any], job: Any) -> tuple[Any, Exception | None]:
    """The function's value, or the error that it raised with its traceback as a note."""
    try:
        return function(job), None
    except Exception as error:
        error.add_note("".join(traceback.format_tb(error.__traceback__)))
        return None, error


def pack_outcome(value: Any, error: Exception | None) -> bytes:
    """Value and error as bytes for another process; what cannot be pickled becomes an error that says so."""
    try:
        return pickle.dumps((value, error))
    except Exception as problem:
        what = f"raised {error!r}, which" if error is not None else "returned a value that"
        return pickle.dumps((None, RunError(f"the job {what} cannot be sent back to the caller: {problem}")))


def job_lost(attempts: int, reason: str) -> RunError:
    return RunError(f"the job's process died {attempts} times ({reason}); out of memory, or killed?")
