"""Services for tests: in a thread of the test, or as a process that can be killed."""

import http.client
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from PIL import Image

import bacs
from bacs.serve.access import Access
from bacs.serve.limits import Limits
from bacs.serve.server import listen, make_server, make_service, run
from bacs.serve.state import State
from small import small_member

TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 120  # seconds for a process to begin, on a machine that is busy with other things
NAMES = ["ant", "bee", "cat", "dog", "elk"]


def served_ensemble(members=3):
    """Members of 5 classes for pictures of 12 x 12."""
    fit = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
    return bacs.Ensemble([replace(small_member(seed), preprocessing=fit) for seed in range(members)], class_names=NAMES)


def pixels(count=8, seed=0, size=12):
    """uint8 NHWC images."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, size, size, 3), dtype=torch.uint8, generator=generator).numpy()


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(image)).save(buffer, kind, **options)
    return buffer.getvalue()


def multipart(parts, boundary="border"):
    """Body and headers of a form with a file for each of the parts."""
    head = 'Content-Disposition: form-data; name="picture"; filename="a"\r\nContent-Type: application/octet-stream'
    body = b"".join(f"--{boundary}\r\n{head}\r\n\r\n".encode() + part + b"\r\n" for part in parts)
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def ask(port, method, path, body=None, headers=None):
    """Status, headers and body of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def predict(port, images, headers=None):
    """The answer of /predict for uint8 images, sent as PNG."""
    body, kind = multipart([encoded(image) for image in images])
    status, _, told = ask(port, "POST", "/predict", body, kind | (headers or {}))
    assert status == 200, told
    return json.loads(told)


class Running:
    """A service in a thread; leaving it ends it gently, as SIGTERM would."""

    def __init__(self, stream: Any, *, state: Path | None = None, required: bool = False, **options: Any) -> None:
        hosts = frozenset({"127.0.0.1", "localhost"})
        how = {"name": "small", "batch_size": 8, "delay": 0.0, "limits": Limits()} | options
        keeper = State(state, save_every=how.pop("save_every", 1000))
        self.service = make_service(stream, keeper, Access(TOKEN, required, hosts), **how)
        self._socket = listen("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        begun = Event()
        self.server = make_server(self.service, on_ready=begun.set)
        self.saved: bool | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()
        assert begun.wait(PATIENCE)

    def _run(self) -> None:
        with self._socket:
            self.saved = run(self.server, self._socket)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def ask(self, method, path, body=None, headers=None):
        return ask(self.port, method, path, body, headers)

    def predict(self, images, headers=None):
        return predict(self.port, images, headers)

    def settle(self):
        """Waits until the worker is past all that was answered: it writes down what is shown after it has answered."""
        self.service.queue.ask(int).result(PATIENCE)

    def control(self, action):
        status, _, told = self.ask("POST", f"/control/{action}", headers=BEARER)
        assert status == 200, told
        return json.loads(told)


class ServingProcess:
    """`bacs serve` as a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = "import sys, torch; torch.set_num_threads(1); from bacs.cli import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, "serve", *map(str, arguments), "--port", "0"],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stderr is not None
        self.log: list[str] = []
        self.ready: dict[str, Any] = {}
        begun = Event()
        self._reader = Thread(target=self._read, args=(begun,))
        self._reader.start()
        assert begun.wait(PATIENCE), self.log
        assert self.ready, "".join(self.log)
        self.port = int(self.ready["url"].rpartition(":")[2])

    def _read(self, begun: Event) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode())
            if '"event": "ready"' in self.log[-1]:
                self.ready = json.loads(self.log[-1])
                begun.set()
        begun.set()

    def __enter__(self) -> "ServingProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)

    def end(self, sign: int = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


def wait_until(condition, what="it"):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"{what} never came"
        time.sleep(0.01)
