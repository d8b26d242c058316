"""What a client is told when it does not get what it asked for: a status and one line, nothing of the machine."""


class Refused(Exception):
    """A request that is answered by an error. `retry_after`: seconds after which it may fare better."""

    def __init__(self, status: int, reason: str, *, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.retry_after = status, reason, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """A refused body is not read to its end, so its connection cannot be used again."""
        found = {"Connection": "close"} if self.status in (408, 413) else {}
        return found | ({} if self.retry_after is None else {"Retry-After": str(self.retry_after)})
