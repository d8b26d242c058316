"""The life of a service: opened, run by uvicorn until a signal, drained, saved."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bacs.errors import RunError
from bacs.methods import Stream
from bacs.serve.access import Access
from bacs.serve.app import make_app
from bacs.serve.body import Intake
from bacs.serve.display import Display
from bacs.serve.limits import Limits
from bacs.serve.metrics import Metrics
from bacs.serve.queue import Queue
from bacs.serve.recent import RecentPredictions
from bacs.serve.service import Service
from bacs.serve.state import State
from bacs.serve.worker import StreamWorker

LOG = logging.getLogger("bacs.serve")


def make_service(
    stream: Stream,
    state: State,
    access: Access,
    *,
    name: str,
    batch_size: int,
    delay: float,
    limits: Limits,
    frozen: bool = False,
    pictures: bool = True,
    coverage: float = 0.9,
    accuracy: float | None = None,
) -> Service:
    """A service around a stream; its worker has not begun yet."""
    queue, display = Queue(limits.max_queue), Display(pictures=pictures)
    metrics = Metrics(queue)
    recent = RecentPredictions(coverage=coverage, accuracy=accuracy)
    how = {"batch_size": batch_size, "delay": delay, "frozen": frozen}
    worker = StreamWorker(stream, queue, state, display, metrics, recent, **how)
    ensemble = stream.source
    names = None if ensemble.class_names is None else list(ensemble.class_names)
    display.set_now(name=name, class_names=names, members=len(ensemble), limit=limits.max_queue)
    return Service(name, ensemble, worker, queue, display, metrics, limits, access, Intake(limits))


class PatientProtocol(H11Protocol):
    """uvicorn's, with a limit for connections and for the time in which a client sends its headers."""

    limits = Limits()

    def connection_made(self, transport: Any) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            transport.abort()
            return
        self._headers_due = self.loop.call_later(self.limits.max_seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        due = getattr(self, "_headers_due", None)
        if due is not None:
            due.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._headers_due.cancel()
        self._headers_due = self.loop.call_later(self.limits.max_seconds + self.timeout_keep_alive, self._give_up)

    def _give_up(self) -> None:
        """Closes a connection whose client has not finished its headers; a request at work has limits of its own."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


class SignalledServer(uvicorn.Server):
    """Ends by itself after a signal: uvicorn would send the signal to its own process again at the end."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self.service, self._on_ready = service, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.should_exit = True  # and no more: whoever was interrupted may hold any lock

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.end()
        await super().shutdown(sockets=sockets)


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound before anything else is made: a port that is taken is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(f"cannot listen on {host} port {port}: {reason}") from error
    return sock


def make_server(service: Service, *, on_ready: Callable[[], Any] = lambda: None) -> SignalledServer:
    """uvicorn, set up for this service."""
    protocol = type("LimitedProtocol", (PatientProtocol,), {"limits": service.limits})
    config = uvicorn.Config(
        make_app(service),
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # A client that finds its connection closed in the very moment of a request sees a failure: idle ones stay long.
        timeout_keep_alive=int(service.limits.max_seconds) + 1,
        timeout_graceful_shutdown=int(2 * service.limits.max_seconds) + 1,
    )
    return SignalledServer(config, service, on_ready)


def run(server: SignalledServer, sock: socket.socket) -> bool:
    """Serves until SIGTERM or Ctrl-C. What was accepted is answered, then the stream is saved: True if it could be."""
    service = server.service
    service.worker.start()
    try:
        asyncio.run(server.serve(sockets=[sock]))
    finally:
        service.end()
        service.queue.close()
        service.worker.join()
        service.pool.shutdown()
    LOG.info("ended", extra={"facts": {"step": service.worker.stream.steps, "saved": service.worker.saved}})
    return service.worker.saved
