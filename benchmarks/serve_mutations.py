"""Thousands of damaged requests of both protocols against a service on this machine.

    python benchmarks/serve_mutations.py --port 8000 --model cifar10 --requests 10000

Good requests are cut, flipped, repeated and mixed, in their heads as in their bodies. Prints how often each status
came; exit code 1 if one was 500 or above, if an answer shows a traceback or a path, or if the service does not answer
a good request at the end.
"""

import argparse
import contextlib
import io
import json
import random
import re
import socket
import sys
from collections import Counter

import numpy as np
from PIL import Image

TELLTALE = re.compile(rb"Traceback|File \"|\.py\b|/home/|/usr/|/tmp/|site-packages")
NUMBERS = ("0", "-1", "1e309", "NaN", "999999999999999999999", "null", '"x"', "[]", "{}", "true")


def head(path, body, kind, **more):
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()] + ["Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def good_requests(model, size):
    """(head, body) of requests that a service of this picture size answers with 200."""
    pixels = np.random.default_rng(0).integers(0, 256, (2, size, size, 3), dtype=np.uint8)
    found = []
    for kind in ("PNG", "JPEG", "WEBP"):
        buffer = io.BytesIO()
        Image.fromarray(pixels[0]).save(buffer, kind)
        body = buffer.getvalue()
        found.append((head("/predict", body, f"image/{kind.lower()}"), body))
        part = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\n' + body + b"\r\n"
        body = part * 2 + b"--b--\r\n"
        found.append((head("/predict", body, "multipart/form-data; boundary=b"), body))
    tensor = {"name": "images", "shape": list(pixels.shape), "datatype": "UINT8"}
    path = f"/v2/models/{model}/infer"
    body = json.dumps({"id": "a", "inputs": [{**tensor, "data": pixels.ravel().tolist()}]}).encode()
    found.append((head(path, body, "application/json"), body))
    tensor["parameters"] = {"binary_data_size": pixels.nbytes}
    text = json.dumps({"inputs": [tensor], "outputs": [{"name": "probabilities"}]}).encode()
    body = text + pixels.tobytes()
    found.append((head(path, body, "application/octet-stream", Inference_Header_Content_Length=len(text)), body))
    return found


def mutated(data, rng):
    """The bytes with one to four faults."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        length = rng.choice((1, 2, 8, 64))
        fault = rng.randrange(6)
        if fault == 0:
            del data[place : place + length]
        elif fault == 1:
            data[place:place] = rng.randbytes(length)
        elif fault == 2 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif fault == 3:
            data[place:place] = data[place : place + length] * rng.randint(1, 20)
        elif fault == 4:
            del data[place:]
        else:
            numbers = list(re.finditer(rb"-?\d+", bytes(data)))
            if numbers:
                found = rng.choice(numbers)
                data[found.start() : found.end()] = rng.choice(NUMBERS).encode()
    return bytes(data)


def mutation(good, rng):
    """A request with a damaged body of right length, a damaged head, or both."""
    first, body = rng.choice(good)
    kind = rng.random()
    if kind < 0.7:
        body = mutated(body, rng)
        first = re.sub(rb"Content-Length: \d+", f"Content-Length: {len(body)}".encode(), first, count=1)
    if kind > 0.6:
        first = mutated(first, rng)
    return first + body


def send(port, request, seconds):
    """The whole answer; empty if there was none in time, or the service closed the connection without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        parts = []
        # A request that was announced longer than it is would be waited for: such clients leave.
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, TimeoutError):
            client.sendall(request)
            while part := client.recv(65536):
                parts.append(part)
        return b"".join(parts)


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else None


def attack(port, model, size, requests, seed, patience=1.0):
    """How often each status came, and what must not be: statuses of 500 and above, and answers that tell too much."""
    rng, good = random.Random(seed), good_requests(model, size)
    counts, faults = Counter(), []
    for number in range(requests):
        request = mutation(good, rng)
        answer = send(port, request, patience)
        status = status_of(answer)
        counts[status] += 1
        if (status is not None and status >= 500) or TELLTALE.search(answer):
            faults.append((number, request[:300], answer[:300]))
    for first, body in good:
        status = status_of(send(port, first + body, 60.0))
        if status != 200:
            faults.append(("good", first, status))
    return counts, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=1.0, help="seconds to wait for an answer before leaving")
    options = parser.parse_args()
    aim = options.port, options.model, options.size
    counts, faults = attack(*aim, options.requests, options.seed, options.patience)
    for status, count in sorted(counts.items(), key=lambda pair: pair[0] or 0):
        print("no answer" if status is None else status, count)
    for fault in faults[:20]:
        print("FAULT", *fault)
    print(f"{sum(counts.values())} mutated requests, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
