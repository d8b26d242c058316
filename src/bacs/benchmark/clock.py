"""What the time of a cell was spent on."""

import time


class Clock:
    """Seconds by what they were spent on; each lap since the last one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.began = self.last = time.perf_counter()

    def go_on(self, seconds: dict[str, float]) -> None:
        """Adds what was spent before, by a process that did not come to its end."""
        for name, spent in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + spent
            self.began -= spent

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now

    def total(self) -> float:
        return time.perf_counter() - self.began
