"""What the routes share, and the way of a request through the queue."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bacs.ensemble import Ensemble
from bacs.serve.access import Access
from bacs.serve.answers import Answer
from bacs.serve.body import BUSY, Intake
from bacs.serve.display import Display
from bacs.serve.limits import Limits
from bacs.serve.metrics import Metrics
from bacs.serve.queue import Queue, QueueClosed, QueueFull, Views
from bacs.serve.refusal import Refused
from bacs.serve.worker import StreamWorker


@dataclass(eq=False)
class Service:
    """One stream and what stands around it."""

    name: str
    ensemble: Ensemble  # as it came: what may be read without asking the worker
    worker: StreamWorker
    queue: Queue
    display: Display
    metrics: Metrics
    limits: Limits
    access: Access
    intake: Intake
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="bacs-decode"))
    ending: bool = False

    @property
    def ready(self) -> bool:
        return self.worker.is_alive() and not self.ending

    def end(self) -> None:
        """Tells those who watch to leave; what was accepted is answered, in batches that wait for no more."""
        self.ending = True
        self.queue.hurry()
        self.display.tell()

    async def off_loop(self, work: Callable[[], Any]) -> Any:
        """What `work` returns, made by another thread: the loop stays free for the others."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    async def predict(self, images: int, make: Callable[[], Views]) -> Answer:
        """The answer for so many images, which `make` decodes once they have a place in the queue."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            place = self.queue.reserve(images)
        except QueueFull as error:
            raise Refused(429, BUSY, retry_after=self.retry_after()) from error
        except QueueClosed as error:
            raise Refused(503, "the service is ending", retry_after=10) from error
        try:
            self.queue.fill(place, await self.off_loop(make))
            async with asyncio.timeout(self.limits.max_seconds):
                answer = await asyncio.wrap_future(place.answer)
        except TimeoutError as error:
            raise Refused(503, "no answer in time", retry_after=self.retry_after()) from error
        finally:
            self.queue.drop(place)  # if the worker never came to it
        self.display.add_latency(loop.time() - began)
        return answer

    async def ask(self, action: Callable[[], Any]) -> Any:
        """What the worker returns for an action on its stream."""
        try:
            return await asyncio.wrap_future(self.queue.ask(action))
        except QueueClosed as error:
            raise Refused(503, "the service is ending", retry_after=10) from error

    def retry_after(self) -> int:
        """Seconds until what waits now should be done."""
        speed = self.worker.images_per_second
        return min(60, max(1, math.ceil(self.queue.images / speed))) if speed > 0 else 1
