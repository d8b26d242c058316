import hashlib
import io
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from bacs.data.download import Remote, fetch, unpack
from bacs.errors import DataError

CONTENT = np.random.default_rng(0).bytes(3_000_000)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []  # the Range headers, in order
        self.cuts = []  # after how many bytes to drop the next connections
        self.ranges = True

    def handle_error(self, request, client_address):
        pass  # clients hang up on purpose


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        if self.path != "/file.bin":
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote_of(server: Server, checksum: str = SHA256, path: str = "file.bin") -> Remote:
    return Remote(f"http://127.0.0.1:{server.server_port}/{path}", "set/file.bin", checksum)


def test_a_whole_download_is_checked_and_not_repeated(server, tmp_path):
    path = fetch(remote_of(server), tmp_path)
    assert path == tmp_path / "set" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(remote_of(server), tmp_path) == path
    assert server.asked == [None]
    assert list(path.parent.iterdir()) == [path]


def test_md5_checksums_serve_too(server, tmp_path):
    fetch(remote_of(server, "md5:" + hashlib.md5(CONTENT).hexdigest()), tmp_path)


def test_a_cut_is_resumed_in_the_same_call(server, tmp_path):
    server.cuts = [1_000_000, 500_000]
    assert fetch(remote_of(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000000-", "bytes=1500000-"]


def test_a_later_call_carries_on_with_the_part(server, tmp_path):
    server.cuts = [1_000_000]
    with pytest.raises(DataError, match=r"cut after 1000000 of 3000000 bytes.*1000000 bytes are kept"):
        fetch(remote_of(server), tmp_path, attempts=1)
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["file.bin.part"]
    assert fetch(remote_of(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000000-"]


def test_a_whole_part_is_only_renamed(server, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin.part").write_bytes(CONTENT)
    assert fetch(remote_of(server), tmp_path).read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.ranges, server.cuts = False, [1_000_000]
    assert fetch(remote_of(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_removes_the_file(server, tmp_path):
    with pytest.raises(DataError, match=r"file.bin: sha256 \w+ instead of 00ff; the file was removed"):
        fetch(remote_of(server, "sha256:00ff"), tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_the_servers_refusal_is_told(server, tmp_path):
    with pytest.raises(DataError, match=r"/nothing.bin: the server answered 404"):
        fetch(remote_of(server, path="nothing.bin"), tmp_path)
    assert server.asked == [None]


def test_no_server_at_all_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DataError, match="download failed"):
        fetch(Remote("http://127.0.0.1:9/file.bin", "file.bin", SHA256), tmp_path)


def make_tar(path, members: dict[str, bytes], mode: str = "w:gz") -> None:
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_archives_are_unpacked_whole(tmp_path):
    make_tar(tmp_path / "a.tar.gz", {"data/x.bin": b"x", "data/deep/y.bin": b"y", "readme": b"left out"})
    unpack(tmp_path / "a.tar.gz", tmp_path, ("data",))
    assert (tmp_path / "data/x.bin").read_bytes() == b"x"
    assert (tmp_path / "data/deep/y.bin").read_bytes() == b"y"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "data"]


@pytest.mark.parametrize("name", ["../outside", "/tmp/bacs-outside", "data/../../outside"])
def test_archives_cannot_write_outside(tmp_path, name):
    folder = tmp_path / "in"
    folder.mkdir()
    make_tar(folder / "a.tar", {"data/x": b"x", name: b"harm"}, "w")
    with pytest.raises(DataError, match="points outside the archive"):
        unpack(folder / "a.tar", folder, ("data",))
    assert [path.name for path in folder.iterdir()] == ["a.tar"]
    assert list(tmp_path.iterdir()) == [folder]


def test_damaged_and_foreign_archives_leave_nothing(tmp_path):
    make_tar(tmp_path / "a.tar.gz", {"data/x.bin": np.random.default_rng(0).bytes(10_000)})
    (tmp_path / "a.tar.gz").write_bytes((tmp_path / "a.tar.gz").read_bytes()[:5000])
    with pytest.raises(DataError, match=r"a.tar.gz: cannot be unpacked"):
        unpack(tmp_path / "a.tar.gz", tmp_path, ("data",))
    make_tar(tmp_path / "a.tar.gz", {"other/x.bin": b"x"})
    with pytest.raises(DataError, match=r"a.tar.gz: data is not in it"):
        unpack(tmp_path / "a.tar.gz", tmp_path, ("data",))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]
