"""Load on a service of this machine, and the same stream stepped in a loop without it.

    python benchmarks/serve_load.py results/cifar10 --images /data/cifar10.npz --seconds 120 --clients 16

The service runs as a process of its own on the loopback address. Clients send a picture after the other, as many at a
time as it takes to fill batches; in alternation with them, the stream is stepped in this process on batches of the
same size. Then half of that load is offered at a fixed pace, for latency. Bounded in requests and time. `--record
FILE.json` keeps the figures.
"""

import argparse
import asyncio
import io
import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

import bacs

MOST = 200_000
"""Requests of a run at most, whatever the time."""


def pictures(file, count):
    """uint8 images of a .npz with x_test, or of a .npy."""
    found = np.load(file)
    return np.asarray(found["x_test"] if file.suffix == ".npz" else found)[:count]


def requests_of(images, per_request):
    """Encoded bodies of multipart requests, each of so many pictures."""
    bodies = []
    for start in range(0, len(images) - per_request + 1, per_request):
        parts = []
        for image in images[start : start + per_request]:
            buffer = io.BytesIO()
            Image.fromarray(image).save(buffer, "PNG", compress_level=1)
            head = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'
            parts.append(head + buffer.getvalue() + b"\r\n")
        body = b"".join(parts) + b"--b--\r\n"
        head = (
            f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        bodies.append(head.encode() + body)
    return bodies


async def answered(reader):
    """Status and body of one response on a connection that stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
    return int(lines[0].split()[1]), await reader.readexactly(length)


class Tally:
    """What became of the requests of a phase."""

    def __init__(self):
        self.sent = self.answered = self.failed = self.images = 0
        self.latencies = []


async def client(port, bodies, tally, until, pace, number, clients, expected):
    """Sends one request after the other, or at a pace (seconds from one to the next)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = time.monotonic() + pace * number / clients  # at a pace, clients come evenly and not all at once
    number *= 7919
    try:
        while time.monotonic() < until and tally.sent < MOST:
            if pace:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due += pace
            began = time.monotonic()
            tally.sent += 1
            writer.write(bodies[number % len(bodies)])
            await writer.drain()
            status, body = await answered(reader)
            number += 1
            found = json.loads(body).get("predictions", [])
            if status == 200 and len(found) == expected:
                tally.answered += 1
                tally.images += expected
                tally.latencies.append(time.monotonic() - began)
            else:
                tally.failed += 1
    finally:
        writer.close()


async def phase(port, bodies, clients, seconds, pace=0.0, expected=1):
    tally, began = Tally(), time.monotonic()
    until = began + seconds
    tasks = [client(port, bodies, tally, until, pace, i, clients, expected) for i in range(clients)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for error in (result for result in results if isinstance(result, BaseException)):
        print("a client failed:", repr(error))
        tally.failed += 1
    return tally, time.monotonic() - began


def loop_phase(stream, images, batch_size, seconds):
    """Images a second of the stream alone."""
    began, done, start = time.monotonic(), 0, 0
    while time.monotonic() - began < seconds:
        if start + batch_size > len(images):
            start = 0
        stream.step_predictive(images[start : start + batch_size])
        start += batch_size
        done += batch_size
    return done / (time.monotonic() - began)


def resident_megabytes(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def begin(options):
    command = [sys.executable, "-c", "import sys; from bacs.cli import main; sys.exit(main())", "serve", options.run]
    command += ["--port", "0", "--method", options.method, "--batch-size", str(options.batch_size)]
    command += ["--delay", str(options.delay)]
    command += ["--size", *map(str, options.size)] if options.size else []
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        told = json.loads(line)
        if told["event"] == "ready":
            port = int(told["url"].rpartition(":")[2])
            # The log goes on: somebody must read it, or the service would wait for room in the pipe.
            subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
            return process, port
    raise SystemExit("the service did not begin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--size", type=int, nargs=2)
    parser.add_argument("--method", default="bacs")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--per-request", type=int, default=4, help="pictures of a request")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--delay", type=float, default=0.02)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=4, help="alternations of service and loop")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    images = pictures(options.images, 4096)
    bodies = requests_of(images, options.per_request)
    ensemble = bacs.load(options.run)
    stream = bacs.stream(ensemble, options.method)
    process, port = begin(options)
    try:
        part = options.seconds / options.rounds
        asyncio.run(phase(port, bodies, options.clients, 5.0, expected=options.per_request))  # both warm
        loop_phase(stream, images, options.batch_size, 5.0)
        memory = [resident_megabytes(process)]
        served, alone, failed, sent, full = [], [], 0, 0, []
        for number in range(options.rounds):
            tally, seconds = asyncio.run(phase(port, bodies, options.clients, part, expected=options.per_request))
            served.append(tally.images / seconds)
            full += tally.latencies
            failed, sent = failed + tally.failed, sent + tally.sent
            lost = tally.sent - tally.answered - tally.failed
            alone.append(loop_phase(stream, images, options.batch_size, part))
            memory.append(resident_megabytes(process))
            told = f"service {served[-1]:.1f}, loop {alone[-1]:.1f} images/s, memory {memory[-1]:.0f} MB, lost {lost}"
            print(f"round {number + 1}: {told}", flush=True)
        rate = statistics.median(served) / 2
        pace = options.clients * options.per_request / rate
        tally, _ = asyncio.run(phase(port, bodies, options.clients, part, pace, expected=options.per_request))
        failed, sent = failed + tally.failed, sent + tally.sent
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(120)
    half = np.percentile(tally.latencies, [50, 99])
    figures = {
        "run": Path(options.run).name,
        "method": options.method,
        "clients": options.clients,
        "batch_size": options.batch_size,
        "pictures_per_request": options.per_request,
        "seconds": options.seconds,
        "requests": sent,
        "failed": failed,
        "service_images_per_second": served,
        "loop_images_per_second": alone,
        "ratio": statistics.median(served) / statistics.median(alone),
        "full_load_latency_seconds": dict(zip(("p50", "p99"), np.percentile(full, [50, 99]).tolist(), strict=True)),
        "half_load_latency_seconds": dict(zip(("p50", "p99"), half.tolist(), strict=True)),
        "memory_megabytes": memory,
        "exit_code": code,
    }
    print(json.dumps(figures, indent=1))
    if options.record:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if failed or code else 0


if __name__ == "__main__":
    sys.exit(main())
