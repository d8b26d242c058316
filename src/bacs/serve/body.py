"""The bodies of requests, received within limits: of one, of all together, and of time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from bacs.serve.limits import Limits
from bacs.serve.refusal import Refused

BUSY = "the service is busy"


class Intake:
    """How many requests and bytes are held at present. Used by the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.bytes = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body, held until the caller is done with it."""
        limits = self.limits
        if self.requests >= limits.max_requests:
            raise Refused(429, BUSY, retry_after=1)
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "content-encoding must be identity: send bodies as they are")
        announced = int(request.headers.get("content-length", "0"))
        if announced > limits.max_body_bytes:
            raise Refused(413, f"a body may have at most {limits.max_body_bytes} bytes, got {announced}")
        self.requests += 1
        held = 0
        try:
            chunks = []
            async with asyncio.timeout(limits.max_seconds):
                async for chunk in request.stream():
                    held += len(chunk)
                    self.bytes += len(chunk)
                    if held > limits.max_body_bytes:
                        raise Refused(413, f"a body may have at most {limits.max_body_bytes} bytes")
                    if self.bytes > limits.max_held_bytes:
                        raise Refused(429, BUSY, retry_after=1)
                    chunks.append(chunk)
            yield b"".join(chunks)
        except TimeoutError as error:
            raise Refused(408, f"a request must be sent within {limits.max_seconds:g} seconds") from error
        finally:
            self.requests -= 1
            self.bytes -= held


def parts_of(body: bytes, content_type: str, *, most: int) -> list[bytes]:
    """The parts of a multipart body, in their order; they stay in memory, where the body is anyway."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise Refused(422, "multipart/form-data needs a boundary")
    parts: list[bytearray] = []

    def begin() -> None:
        if len(parts) == most:
            raise Refused(413, f"a request may have at most {most} pictures")
        parts.append(bytearray())

    def extend(data: bytes, start: int, end: int) -> None:
        parts[-1].extend(data[start:end])

    try:
        parser = MultipartParser(boundary, {"on_part_begin": begin, "on_part_data": extend})
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise Refused(422, "the body is no multipart/form-data of this boundary") from error
    return [bytes(part) for part in parts]
