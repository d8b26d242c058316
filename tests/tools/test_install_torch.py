"""Which build of torch is installed: the CPU's without a GPU, pip's choice with one, on request or in silence."""

import http.server
import socket
import threading
from importlib import metadata

import install_torch
import pytest


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The only folder of the path: what is written there is all that this machine has."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("TORCH", raising=False)
    return tmp_path


@pytest.fixture
def index():
    """An index of packages on this machine, which has torch and nothing else."""

    class Index(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(200 if self.path == "/torch/" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_driver(folder, code):
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\nexit {code}\n")
    (folder / "nvidia-smi").chmod(0o755)


def test_without_a_gpu_the_cpu_builds_are_offered(programs, index):
    assert install_torch.choose_options("torch", index) == ["--extra-index-url", index]
    write_driver(programs, 9)  # as it says where a driver is installed and no GPU is there
    assert install_torch.choose_options("torch", index) == ["--extra-index-url", index]


def test_a_gpu_keeps_pips_choice(programs, index):
    write_driver(programs, 0)
    assert install_torch.choose_options("torch", index) == []


def test_who_asks_for_pips_choice_gets_it(programs, index, monkeypatch):
    monkeypatch.setenv("TORCH", "default")
    assert install_torch.choose_options("torch", index) == []


def test_an_index_without_the_package_is_not_offered(programs, index):
    assert install_torch.choose_options("torchvision", index) == []


def test_an_index_that_refuses_or_says_nothing_is_not_waited_for(programs):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert not install_torch.answers(address, patience=0.2)
    assert not install_torch.answers(address, patience=5.0)  # nobody listens there any more


def test_the_time_holds_while_a_name_is_looked_up(programs, monkeypatch):
    done = threading.Event()

    def look_up(*_, **__):
        done.wait()
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert not install_torch.answers("http://index.invalid/torch/", patience=0.1)
    done.set()


def test_what_is_installed_stays_and_no_index_is_asked(tmp_path, monkeypatch):
    version = metadata.version("torch").split("+")[0]
    (tmp_path / "constraints.txt").write_text(f"numpy==1.0\ntorch=={version}\n")
    monkeypatch.setattr(install_torch, "answers", lambda _: pytest.fail("an index was asked"))
    monkeypatch.setattr(install_torch.subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    assert install_torch.main("torch", tmp_path / "constraints.txt") == 0


def test_another_version_is_installed_alone_and_exactly(tmp_path, monkeypatch):
    (tmp_path / "constraints.txt").write_text("torch==0.0.1\n")
    commands = []

    def run(command, **_):
        commands.append(command)
        return install_torch.subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(install_torch, "choose_options", lambda _: ["--extra-index-url", "here"])
    monkeypatch.setattr(install_torch.subprocess, "run", run)
    assert install_torch.main("torch", tmp_path / "constraints.txt") == 3
    assert commands[0][-4:] == ["--no-deps", "--extra-index-url", "here", "torch==0.0.1"]


def test_the_projects_own_file_pins_what_is_built_with_torch():
    for name in ("torch", "torchvision"):
        assert install_torch.read_version(name, install_torch.CONSTRAINTS)[0].isdigit()
    with pytest.raises(SystemExit, match="has no line torchaudio==VERSION"):
        install_torch.read_version("torchaudio", install_torch.CONSTRAINTS)
