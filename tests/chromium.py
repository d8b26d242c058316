"""Headless Chromium by the DevTools protocol over a pipe: nothing beyond the standard library is needed."""

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from install_programs import find

CHROMIUM = find("chromium")
PATIENCE = 60  # seconds for an answer, on a machine that is busy with other things


class Page:
    """One browser with one page; `errors` and `requests` are what the page has complained of and asked for."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        (self._to_read, self._to), (self._from, self._from_write) = os.pipe(), os.pipe()
        # Chromium reads from 3 and writes to 4; our own ends must not be among them.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (self._to_read, self._from_write)]
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [
                *(CHROMIUM, "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run"),
                *("--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={profile}"),
                *sandbox,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: [os.dup2(end, number) for end, number in zip(theirs, (3, 4), strict=True)],
            pass_fds=(3, 4),
        )
        for end in (self._to_read, self._from_write, *theirs):
            os.close(end)
        self._buffer, self._number, self._session = b"", 0, None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)  # they would be cut off from the width of screenshots

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def open(self, file: Path) -> None:
        """Opens a file and waits until it is loaded."""
        self.visit(file.as_uri())

    def visit(self, address: str) -> None:
        """Opens an address and waits until it is loaded."""
        self.errors, self.requests, self._loaded = [], [], False
        self.call("Page.navigate", url=address)
        until = time.monotonic() + PATIENCE
        while not self._loaded:
            assert time.monotonic() < until, "the page did not load"
            self._handle(self._receive(until))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer; events that come before it are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(until)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._handle(answer)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Waits until a JavaScript expression is true in the page."""
        until = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < until, f"the page never came to {expression}"
            time.sleep(0.05)

    def screenshot(self, file: Path) -> None:
        """A PNG of the whole page, beyond what the window shows."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def width(self, pixels: int, height: int = 800) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str, media: str = "screen") -> None:
        """Light or dark, as a reader's system asks for, on a screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def press(self, key: str) -> None:
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        code = {"Enter": 13, "Space": 32, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            named = " " if key == "Space" else key
            self.call("Input.dispatchKeyEvent", type=kind, key=named, code=key, text=text, windowsVirtualKeyCode=code)

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, "Chromium did not answer"
            data = os.read(self._from, 1 << 20)
            assert data, "Chromium went away"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _handle(self, event: dict[str, Any]) -> None:
        method, details = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(details["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(details["args"]))
        elif method == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.errors.append(details["entry"]["text"])
