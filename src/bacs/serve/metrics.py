"""Figures for Prometheus, in a registry of their own: a process may hold several services, as tests do."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bacs.serve.queue import Queue

GAUGES = {
    "estimate": "Estimated accuracy of the last images, without labels",
    "agreement": "Share of images and pairs of members with one label",
    "confidence": "Mean confidence of the last images",
    "effective_classes": "Over how many classes the last predictions are spread",
    "moved": "Distance of the weights from home, in posterior deviations",
    "batch_weight": "Share of the batch in batch norm's statistics",
    "learning_rate": "Of the steps; 0 while no weight moves",
}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Counters and gauges of one service."""

    def __init__(self, queue: Queue) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter("bacs_requests", "Answers by route and status", ["route", "status"], registry=registry)
        self._request_seconds = Histogram(
            "bacs_request_seconds", "From the first byte to the answer", ["route"], buckets=SECONDS, registry=registry
        )
        self._images = Counter("bacs_images", "Images predicted", registry=registry)
        self._batch_seconds = Histogram("bacs_batch_seconds", "Of a batch's step", buckets=SECONDS, registry=registry)
        self._batch_images = Histogram(
            "bacs_batch_images", "In a batch", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512), registry=registry
        )
        waiting = Gauge("bacs_queue_images", "Images that wait", registry=registry)
        waiting.set_function(lambda: queue.images)
        self._saves = Counter("bacs_saves", "Attempts to keep the stream", ["result"], registry=registry)
        self._saved_step = Gauge("bacs_saved_step", "The stream's step when it was last kept", registry=registry)
        self._figures = {name: Gauge(f"bacs_{name}", text, registry=registry) for name, text in GAUGES.items()}

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def batch(self, images: int, seconds: float) -> None:
        self._images.inc(images)
        self._batch_images.observe(images)
        self._batch_seconds.observe(seconds)

    def row(self, row: dict[str, Any]) -> None:
        """The label-free figures; those that are not known are NaN, as Prometheus has it."""
        for name, gauge in self._figures.items():
            gauge.set(float("nan") if row[name] is None else row[name])

    def save(self, well: bool, step: int) -> None:
        self._saves.labels("done" if well else "failed").inc()
        if well:
            self._saved_step.set(step)

    def text(self) -> bytes:
        return generate_latest(self.registry)
