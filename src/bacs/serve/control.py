"""What may be done to a running service. The token is needed always, and no other site's page can do it."""

from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from bacs.serve.page import login_page
from bacs.serve.plain import ERRORS
from bacs.serve.service import Service

LONGEST_LOGIN = 4096


def routes(service: Service) -> APIRouter:
    """POST /control/..., and the way in for browsers."""
    router = APIRouter(tags=["control"], responses=ERRORS)
    worker = service.worker

    def stream_state() -> dict[str, Any]:
        return service.display.snapshot()["now"]

    @router.post("/control/freeze")
    async def freeze() -> dict[str, Any]:
        """Predict by the stream as it stands; nothing adapts until it is resumed."""
        await service.ask(lambda: worker.freeze(True))
        return stream_state()

    @router.post("/control/resume")
    async def resume() -> dict[str, Any]:
        """Adapt again."""
        await service.ask(lambda: worker.freeze(False))
        return stream_state()

    @router.post("/control/reset")
    async def reset() -> dict[str, Any]:
        """Back to the ensemble as it came, bit for bit."""
        await service.ask(worker.reset)
        return stream_state()

    @router.post("/control/save")
    async def save() -> dict[str, Any]:
        """Keep the stream now; `saved` says whether it went well."""
        await service.ask(worker.save)
        return stream_state()

    @router.post("/control/pictures/{shown}")
    async def pictures(shown: bool) -> dict[str, Any]:
        """Show the last pictures on the page, or forget them and show none."""
        service.display.show_pictures(shown)
        return stream_state()

    @router.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        """The token of the page's form becomes a cookie that scripts cannot read and other sites cannot send."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_LOGIN:
                return login_page("That is not the token.")
        given = parse_qs(body.decode("latin-1")).get("token", [""])[0].strip()
        if not service.access.knows(given):
            return login_page("That is not the token.")
        response = RedirectResponse("/", 303)
        response.set_cookie(*service.access.cookie, httponly=True, samesite="strict", path="/")
        return response

    return router
