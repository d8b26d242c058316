"""Kills a service with SIGKILL under load, again and again, and checks every answer that it gave.

    python benchmarks/serve_kills.py bacs-demo/ensemble --kills 20

Every request is one batch, so that an answer can be checked: from the state that a life began with, `bacs.stream` steps
through the batches in the order of the answers' steps, and must say the same to 1e-6. A kill may lose the answer to a
batch that was stepped; what came after it in that life cannot be checked and is counted apart. The next life must begin
with at most `--save-every` batches less than were answered. Exit code 1 if anything was wrong.
"""

import argparse
import http.client
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np
from PIL import Image

import bacs


def batches_of(ensemble, count, batch_size):
    """Random pictures of the model's size, as pixels and as the bodies of forms."""
    fit = ensemble.members[0].preprocessing
    height, width = fit.size or (32, 32)
    generator = np.random.default_rng(0)
    found = []
    for _ in range(count):
        pixels = generator.integers(0, 256, (batch_size, height, width, len(fit.mean)), dtype=np.uint8)
        parts = []
        for image in pixels:
            buffer = io.BytesIO()
            Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(buffer, "PNG")
            head = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\n'
            parts.append(head + buffer.getvalue() + b"\r\n")
        found.append((pixels, b"".join(parts) + b"--b--\r\n"))
    return found


def begin(run, state, options):
    command = [sys.executable, "-c", "import sys; from bacs.cli import main; sys.exit(main())", "serve", run]
    command += ["--port", "0", "--method", options.method, "--batch-size", str(options.batch_size), "--delay", "0"]
    command += ["--state", str(state), "--save-every", str(options.save_every)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        told = json.loads(line)
        if told["event"] == "ready":
            Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would hold the service up
            return process, int(told["url"].rpartition(":")[2]), told["step"]
    raise SystemExit("the service did not begin")


def client(port, batches, rng, answers, stopped):
    """Sends batches until the service is gone; keeps (step, batch, confidences) of each answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while not stopped.is_set():
        number = rng.randrange(len(batches))
        try:
            headers = {"Content-Type": "multipart/form-data; boundary=b"}
            connection.request("POST", "/predict", batches[number][1], headers)
            told = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return
        answers.append((told["state"]["step"], number, [row["confidence"] for row in told["predictions"]]))


def wrong_answers(stream, answers, batches):
    """How many answers could be checked, and those that no state of the stream would have given."""
    checked, wrong = 0, []
    for step, number, told in sorted(answers):
        if step != stream.steps + 1:
            break
        expected = stream.step_predictive(batches[number][0]).probabilities.max(dim=-1).values.numpy()
        checked += 1
        if np.abs(expected - told).max() > 1e-6:
            wrong.append((step, float(np.abs(expected - told).max())))
    return checked, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--method", default="bacs")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a life at most")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    ensemble = bacs.load(options.run)
    batches = batches_of(ensemble, 32, options.batch_size)
    total = checked_total = 0
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        for kill in range(options.kills):
            stream = bacs.load(state) if state.exists() else bacs.stream(ensemble, options.method)
            begun = stream.steps
            process, port, step = begin(options.run, state, options)
            if step != begun:
                faults.append(f"life {kill} began at step {step}, its state at {begun}")
            answers, stopped = [], Event()
            how = [(port, batches, random.Random(rng.random()), answers, stopped) for _ in range(options.clients)]
            threads = [Thread(target=client, args=each) for each in how]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.2, options.seconds))
            process.send_signal(signal.SIGKILL)
            process.wait()
            stopped.set()
            for thread in threads:
                thread.join()
            checked, wrong = wrong_answers(stream, answers, batches)
            kept = bacs.load(state).steps
            last = max((step for step, _, _ in answers), default=begun)
            if wrong:
                faults.append(f"life {kill}: wrong answers {wrong}")
            if kept < last - options.save_every:
                faults.append(f"life {kill}: step {last} was answered, {kept} was kept")
            total, checked_total = total + len(answers), checked_total + checked
            told = f"answers {len(answers)}, checked {checked}, last step {last}, kept {kept}"
            print(f"kill {kill + 1}: began at {begun}, {told}", flush=True)
    for fault in faults:
        print("FAULT", fault)
    print(f"{options.kills} kills, {total} answers, {checked_total} checked to 1e-6, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
