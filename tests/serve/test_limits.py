"""What one visitor sends, holds or asks for is bounded; the others are served meanwhile."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

pytest.importorskip("voila")
pytest.importorskip("websocket")
resource = pytest.importorskip("resource", reason="bounds open files")

import psutil

from explorer.serve import limits, warm
from explorer.serve import server as serve
from tests.serve.visits import PATIENCE_S, is_served, status

CELLS = ("import ipywidgets", "ipywidgets.Button(description='Hello')")
MANY = 1100  # above what select() takes
HERE, THERE = "127.0.0.1", "127.0.0.2"  # two addresses of this machine, on Linux
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="two loopback addresses")


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process hold the other ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4 * MANY:
        pytest.skip("this process may not open so many files")
    limits.raise_files()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def idle(url: str, count: int, source: str = HERE) -> Iterator[list[socket.socket]]:
    """Connections that ask nothing."""
    where = urlsplit(url)
    assert where.hostname and where.port
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection((where.hostname, where.port), PATIENCE_S, (source, 0))
            )
            for _ in range(count)
        ]


@pytest.mark.skipif(not warm.POSSIBLE, reason="kernels are forked on Linux alone")
def test_a_forked_kernel_is_watched_where_a_thousand_files_are_open() -> None:
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
    try:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            forked = warm.Forked(child.pid)
            assert forked.poll() is None
            forked.kill()
            assert forked.wait() == 0
    finally:
        for file in held:
            os.close(file)


@needs_linux
def test_pages_open_beside_a_thousand_idle_connections_of_two() -> None:
    with serve.start(port=0, cells=CELLS) as server:
        with idle(server.url, 900), idle(server.url, 900, THERE):
            assert status(f"{server.url}voila/static/voila.js") == 200
            assert psutil.Process(server.process.pid).num_fds() > MANY
            assert is_served(server)


LITTLE = """
import resource, sys
from explorer.serve import server as serve
resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))
with serve.start(port=0, cells=("1",)) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def test_with_few_files_one_client_takes_half_of_the_connections_and_no_log() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LITTLE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        with idle(url, MANY):
            if sys.platform == "linux":  # from another address
                with idle(url, 1, THERE) as (other,):
                    other.sendall(b"GET /voila/static/voila.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert other.recv(12) == b"HTTP/1.1 200"
        assert status(f"{url}voila/static/voila.js") == 200
        _, said = parent.communicate("")
    assert len(said) < 10_000, said[:2000]


def test_the_log_ends_somewhere_and_the_last_words_are_in_it() -> None:
    program = """
import os, sys
from explorer.serve import log
log.MOST = 1000
log.bound()
for word in ("first", *sys.argv[1:]):
    print(word, file=sys.stderr)
"""

    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
        )
        return done.stderr

    assert said("last") == "first\nlast\n"
    long = said("x" * 5000, "y" * 5000)
    assert 1000 < len(long) < 1200 and long.startswith("first") and "The log is full" in long
    assert "y" not in long.partition("The log")[0]
