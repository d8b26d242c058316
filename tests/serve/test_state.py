"""What is kept: a restart goes on where it was, and a kill or a full disk costs no more than was not saved."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bacs
from bacs.drivers.kept import check_goes_on
from bacs.errors import CheckpointError, RunError
from bacs.serve.state import State
from serving import Running, ServingProcess, ask, pixels, predict, served_ensemble, wait_until

BATCHES = [pixels(8, seed) for seed in range(12)]


def confidences(told):
    return [row["confidence"] for row in told["predictions"]]


def expected(stream, batch):
    return stream.step_predictive(batch).probabilities.max(dim=-1).values.numpy()


@pytest.mark.parametrize("method", ["bacs", "auto"])
def test_a_restart_goes_on_as_if_it_had_never_stopped(tmp_path, method):
    alone = bacs.stream(served_ensemble(), method)
    with Running(bacs.stream(served_ensemble(), method), state=tmp_path / "state") as running:
        for batch in BATCHES[:3]:
            np.testing.assert_allclose(confidences(running.predict(batch)), expected(alone, batch), atol=1e-6)
    assert running.saved is True
    again, frozen = State(tmp_path / "state", save_every=1).read()
    assert (again.steps, again.begun_with, frozen) == (3, method, False)
    with Running(again, state=tmp_path / "state") as running:
        told = running.predict(BATCHES[3])
        np.testing.assert_allclose(confidences(told), expected(alone, BATCHES[3]), atol=1e-6)
        assert told["state"]["step"] == 4


def test_it_is_kept_every_so_many_batches(tmp_path):
    with Running(bacs.stream(served_ensemble(), "bacs"), state=tmp_path / "state", save_every=2) as running:
        for count, kept in ((1, None), (2, 2), (3, 2), (4, 4)):
            running.predict(BATCHES[count])
            running.settle()
            manifest = tmp_path / "state" / "bacs.json"
            assert (json.loads(manifest.read_text())["stream"]["steps"] if manifest.exists() else None) == kept


def test_frozen_is_kept_too(tmp_path):
    with Running(bacs.stream(served_ensemble(), "bacs"), state=tmp_path / "state") as running:
        running.control("freeze")
    assert State(tmp_path / "state", save_every=1).read()[1] is True


def test_a_full_disk_is_said_and_everybody_is_served(tmp_path, monkeypatch):
    """The disk takes half of a file and then no more, as a full one does."""
    own = bacs.files.write
    full = [False]

    def write(file, data, *, durable=True):
        if full[0]:
            (file.with_name(f".{file.name}.1.tmp")).write_bytes(data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        own(file, data, durable=durable)

    monkeypatch.setattr("bacs.files.write", write)
    alone = bacs.stream(served_ensemble(), "bacs")
    with Running(bacs.stream(served_ensemble(), "bacs"), state=tmp_path / "state", save_every=1) as running:
        for step, batch in enumerate(BATCHES[:4], start=1):
            full[0] = step in (2, 3)
            np.testing.assert_allclose(confidences(running.predict(batch)), expected(alone, batch), atol=1e-6)
            running.settle()
            assert running.service.worker.saved is not full[0]
            assert bacs.load(tmp_path / "state").steps == (1 if full[0] else step)
            assert running.ask("GET", "/v2/health/ready")[0] == 200
        told = running.ask("GET", "/metrics")[2].decode()
        assert 'bacs_saves_total{result="failed"} 2.0' in told
        full[0] = True
    assert running.saved is False  # and the process would end with code 1
    assert bacs.load(tmp_path / "state").steps == 4


def test_a_killed_service_goes_on_from_its_last_save_and_every_answer_was_right(tmp_path):
    served_ensemble().save(tmp_path / "run")
    arguments = (tmp_path / "run", "--method", "bacs", "--batch-size", "8", "--delay", "0")
    arguments += ("--state", tmp_path / "state", "--save-every", "2")
    lives = []
    for _ in range(3):
        alone = bacs.load(tmp_path / "state") if lives else bacs.stream(served_ensemble(), "bacs")
        with ServingProcess(*arguments) as process:
            assert process.ready["step"] == alone.steps
            begun = alone.steps
            for batch in BATCHES[begun : begun + 3]:
                told = predict(process.port, batch)
                np.testing.assert_allclose(confidences(told), expected(alone, batch), atol=1e-6)
                assert told["state"]["step"] == alone.steps
            lives.append(told["state"]["life"])
            assert process.end(signal.SIGKILL) == -signal.SIGKILL
        assert bacs.load(tmp_path / "state").steps >= begun + 2  # three were answered, two or three of them kept
    assert len(set(lives)) == 3


def test_sigterm_answers_what_was_accepted_and_keeps_it(tmp_path):
    served_ensemble().save(tmp_path / "run")
    arguments = (tmp_path / "run", "--method", "bacs", "--batch-size", "8", "--delay", "60")
    with ServingProcess(*arguments, "--state", tmp_path / "state") as process, ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(predict, process.port, pixels(2, seed)) for seed in range(3)]
        wait_until(lambda: b"bacs_queue_images 6.0" in ask(process.port, "GET", "/metrics")[2])
        assert process.end() == 0
        assert [len(one.result()["predictions"]) for one in waiting] == [2, 2, 2]
    events = [json.loads(line)["event"] for line in process.log]
    assert (events[0], events[-1]) == ("ready", "ended")
    assert bacs.load(tmp_path / "state").steps == 1


def test_two_services_do_not_share_a_state(tmp_path):
    state = State(tmp_path / "state", save_every=1)
    with state.lock(), pytest.raises(RunError, match=r"state .* is used by another process \(pid \d+\)"):
        state.lock().__enter__()
    with state.lock():
        pass


def test_a_state_of_another_ensemble_is_refused(tmp_path):
    stream = bacs.stream(served_ensemble(), "bacs")
    check_goes_on(stream, bacs.stream(served_ensemble(), "bacs"), tmp_path)
    with pytest.raises(ValueError, match="state must be of the ensemble that is given"):
        check_goes_on(stream, bacs.stream(served_ensemble(2), "bacs"), tmp_path)
    with pytest.raises(ValueError, match="method must be bacs, with which .* began, got tent"):
        check_goes_on(stream, bacs.stream(served_ensemble(), "tent"), tmp_path)


def test_what_is_no_state_is_named(tmp_path):
    served_ensemble().save(tmp_path / "run")
    with pytest.raises(ValueError, match="holds an ensemble"):
        State(tmp_path / "run", save_every=1).read()
    state = State(tmp_path / "state", save_every=1)
    state.write(bacs.stream(served_ensemble(), "bacs"), frozen=True)
    (tmp_path / "state" / "serve.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"serve.json is damaged"):
        state.read()
    with pytest.raises(ValueError, match="save_every must be at least 1, got 0"):
        State(None, save_every=0)
