"""How much of the machine clients may take. Each limit is what keeps one client from being all of them."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """Beyond a limit a client gets 408, 413, 422 or 429, and the others go on.

    Attributes:
        max_queue: Images that may wait; then 429 with Retry-After.
        max_requests: Requests that are received or answered at a time; then 429.
        max_connections: Open connections; then new ones are closed.
        max_watchers: Pages that follow the service live; then 429.
        max_body_bytes: Of one request; then 413.
        max_held_bytes: Of all bodies that are held at a time; then 429.
        max_pixels: Of one picture, before it is decoded; then 413.
        max_seconds: To send a request, and again to wait for its answer; then 408 or 503.
    """

    max_queue: int = 1024
    max_requests: int = 256
    max_connections: int = 1024
    max_watchers: int = 16
    max_body_bytes: int = 32 * 2**20
    max_held_bytes: int = 256 * 2**20
    max_pixels: int = 50_000_000
    max_seconds: float = 60.0

    def check(self, batch_size: int) -> None:
        """Raises for limits that nothing could pass."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be > 0, got {value}")
        if self.max_queue < batch_size:
            raise ValueError(f"max_queue must hold a batch at least, {batch_size} images, got {self.max_queue}")
        if self.max_held_bytes < self.max_body_bytes:
            raise ValueError(f"max_held_bytes must be max_body_bytes at least, got {self.max_held_bytes}")
