"""Functions that worker processes import by name."""

import os
import signal
import time
from pathlib import Path

import torch


def square(number):
    return number * number


def slow_if_first(number):
    time.sleep(1.0 if number == 0 else 0.0)
    return number


def fail_on_two(number):
    if number == 2:
        raise ValueError("number must not be 2, got 2")
    return number


def die_the_first_time(file):
    """Dies by SIGKILL, as under a lack of memory, unless the file says that it has died before."""
    if not Path(file).exists():
        Path(file).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(file).name


def die_the_first_time_or_rest(file):
    die_the_first_time(file)
    time.sleep(0.5)


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


def threads(number):
    return torch.get_num_threads()


def unpicklable(number):
    return lambda: number


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first)


def raise_what_cannot_be_sent(number):
    raise Odd(lambda: 1, 2)


def where(number):
    return os.getpid()


def write_and_wait(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(60)
