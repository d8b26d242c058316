"""The application: routes, and what holds for all of them."""

import logging
import time
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bacs.serve import control, page, plain, protocol
from bacs.serve.page import login_page
from bacs.serve.refusal import Refused
from bacs.serve.service import Service

LOG = logging.getLogger("bacs.serve")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers hide the origin of our own form too
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


def make_app(service: Service) -> FastAPI:
    """The service as an ASGI application."""
    app = FastAPI(
        title="bacs serve",
        version=version("bacs"),
        description="An ensemble that adapts to what it is shown. docs/serve.md has examples.",
        redoc_url=None,
    )
    for part in (page, plain, protocol, control):
        app.include_router(part.routes(service))
    app.add_exception_handler(Refused, _answer_refused)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(ClientDisconnect, _answer_gone)
    app.add_exception_handler(Exception, _answer_failure)
    app.add_middleware(Gate, service=service)
    app.add_middleware(Journal, service=service)
    return app


class Gate:
    """Lets in what the access rules admit, before anything of a request is read."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.access = app, service.access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self.access.check(scope["method"], scope["path"], Headers(scope=scope))
            except Refused as refused:
                wants_page = refused.status == 401 and scope["path"] == "/" and scope["method"] == "GET"
                response = (
                    login_page() if wants_page else error_response(refused.status, refused.reason, refused.headers)
                )
                if refused.status == 401:
                    response.headers["WWW-Authenticate"] = "Bearer"
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)


class Journal:
    """Counts, logs and times every answer, and gives it the headers that all have."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.metrics = app, service.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            seconds = time.monotonic() - began
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.request(route, status, seconds)
            facts = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 4)}
            LOG.info("request", extra={"facts": facts})


def error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": reason}, status, headers=headers)


async def _answer_refused(request: Request, error: Any) -> Response:
    return error_response(error.status, error.reason, error.headers)


async def _answer_invalid(request: Request, error: Any) -> Response:
    return error_response(422, "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors()))


async def _answer_http_error(request: Request, error: Any) -> Response:
    return error_response(error.status_code, error.detail, dict(error.headers or {}))


async def _answer_gone(request: Request, error: Any) -> Response:
    return error_response(400, "the client left")  # nobody reads it


async def _answer_failure(request: Request, error: Any) -> Response:
    return error_response(500, "the service could not answer")  # the log has the reason
