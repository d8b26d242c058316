"""The live page: three files of its own, and what they ask for. It needs no network beyond the service."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from PIL import Image
from starlette.responses import Response, StreamingResponse

from bacs.serve.body import BUSY
from bacs.serve.refusal import Refused
from bacs.serve.service import Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
LOGIN_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
OFTEN = 0.5
"""Seconds between two events at least: a fast stream must not keep its watchers busy."""

SILENCE = 15.0
"""Seconds after which a comment is sent, so that both sides notice when the other is gone."""

LARGEST = 128


def routes(service: Service) -> APIRouter:
    """The page, its events and pictures, the same as JSON, and the metrics."""
    router = APIRouter(include_in_schema=False)

    def asset(name: str, kind: str) -> Any:
        async def send() -> Response:
            return Response(read_asset(name), media_type=kind, headers={"Content-Security-Policy": POLICY})

        return send

    router.add_api_route("/", asset("page.html", "text/html"), methods=["GET"])
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("charts.js", "text/javascript")):
        router.add_api_route(f"/{name}", asset(name, kind), methods=["GET"])

    def snapshot_for(request: Request, after: int = 0) -> dict[str, Any]:
        """A snapshot, and whether this browser may use the buttons."""
        found = service.display.snapshot(after)
        found["now"] |= {"queue": service.queue.images, "admitted": service.access.admits(request.headers)}
        return found

    @router.get("/status")
    async def status(request: Request) -> dict[str, Any]:
        return snapshot_for(request)

    @router.get("/events")
    async def events(request: Request) -> Response:
        if service.display.watchers >= service.limits.max_watchers:
            raise Refused(429, BUSY, retry_after=10)
        return StreamingResponse(follow(service, partial(snapshot_for, request)), media_type="text/event-stream")

    @router.get("/pictures/{number}")
    async def picture(number: int) -> Response:
        pixels = service.display.picture(number)
        if pixels is None:
            raise Refused(404, "there is no such picture any more")
        return Response(await service.off_loop(partial(as_png, pixels)), media_type="image/png")

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


async def follow(service: Service, take_snapshot: Any) -> AsyncIterator[str]:
    """Server-sent events: everything at first, then the new points of the curves with all that is short."""
    news, after = service.display.listen(), 0
    try:
        while not service.ending:
            news.clear()
            found = take_snapshot(after)
            after = max([after, *(row["number"] for row in found["rows"])])
            yield f"data: {json.dumps(found)}\n\n"
            await asyncio.sleep(OFTEN)
            try:
                await asyncio.wait_for(news.wait(), SILENCE)
            except TimeoutError:
                yield ": nothing new\n\n"
    finally:
        service.display.leave(news)


def as_png(pixels: np.ndarray) -> bytes:
    """A small PNG of uint8 pixels [height, width, channels]."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels[..., :3])
    image.thumbnail((LARGEST, LARGEST))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def login_page(problem: str = "") -> Response:
    """The form that asks for the token, in place of what was asked for."""
    text = read_asset("login.html").replace("{problem}", problem)
    return Response(text, 401, media_type="text/html", headers={"Content-Security-Policy": LOGIN_POLICY})


@cache
def read_asset(name: str) -> str:
    return (files("bacs.serve") / name).read_text(encoding="utf-8")
