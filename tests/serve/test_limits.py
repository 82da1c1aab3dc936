"""What one visitor sends, holds or asks for is bounded; the others are served meanwhile."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from explorer.serve import limits, log, warm
from explorer.serve import server as serve
from tests.serve.visits import (
    PATIENCE_S,
    ask,
    connected,
    farewell,
    frame,
    is_served,
    kernel_of,
    packed,
    read_page,
    settings_module,
    status,
    within,
)

resource = pytest.importorskip("resource", reason="bounds open files")
WORK = {"comm_id": "w", "target_name": "work", "data": {}}
STATES = {"comm_id": "all", "target_name": "jupyter.widget.control", "data": {}}
MB = 10**6
# Arbitrary: a kernel that starts meanwhile counts some 180 MB; the stock server grew by 1.2 GB.
MOST_GROWTH = 400 * MB
TOO_MUCH = 1008  # a close code of RFC 6455
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
def test_pages_open_beside_a_thousand_idle_connections_of_two(plain_server: serve.Server) -> None:
    url = plain_server.url
    with idle(url, 900), idle(url, 900, THERE):
        assert status(f"{url}voila/static/voila.js") == 200
        assert psutil.Process(plain_server.process.pid).num_fds() > MANY
        assert is_served(plain_server)


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
        env={**os.environ, warm.FORK: "0"},  # no page is opened
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
log.limit()
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
    begin, end, _ = long.partition(log.FULL.decode())
    assert 1000 < len(long) < 1200 and long.startswith("first") and end
    assert "y" not in begin


# --- what is sent -------------------------------------------------------------------------------
def memory(server: serve.Server) -> int:
    """Bytes of the server and its kernels, the children of its one child, which still imports."""
    own = psutil.Process(server.process.pid)
    kernels = [each for child in own.children() for each in child.children()]
    return sum(int(each.memory_info().rss) for each in (own, *kernels))


def test_a_long_body_is_not_read(server: serve.Server) -> None:
    before = memory(server)
    head = b"POST /voila/api/shutdown/a HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Content-Length: 99000000\r\n\r\n"
    with idle(server.url, 5) as links:
        for link in links:
            with contextlib.suppress(OSError):  # closed while we send
                link.sendall(head + bytes(60 * MB))
                while link.recv(1000):
                    pass
        assert memory(server) - before < MOST_GROWTH
    assert status(f"{server.url}voila/static/voila.js") == 200


@pytest.mark.parametrize("part", [1, 2, 3], ids=["header", "parent header", "metadata"])
def test_what_is_read_of_a_message_is_short(part: int) -> None:
    guard = settings_module("guard")
    header = b'{"msg_type": "a", "msg_id": "b"}'
    parts = [b"shell", header, b"{}", b"{}", b"{}"]
    assert guard.name_of(packed(parts)) == "b"
    parts[part] = parts[part][:-1] + b" " * 10_000 + b"}"
    with pytest.raises(guard.Mistake):
        guard.name_of(packed(parts))


def test_a_kernel_that_works_is_sent_no_more_than_some_megabytes(server: serve.Server) -> None:
    kernel = kernel_of(read_page(server))
    before = memory(server)
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(connected(server, kernel)) for _ in range(3)]
        links[0].send_binary(frame("comm_open", content=WORK))
        while b'"busy"' not in links[0].recv():
            pass
        for link in links:  # what waits is of the kernel, not of a socket
            with contextlib.suppress(OSError):  # closed while we send
                for _ in range(20):
                    link.send_binary(frame("comm_msg", buffers=[bytes(9 * MB)]))
            with contextlib.suppress(OSError):
                code, words = farewell(link)
                assert code == TOO_MUCH and words.endswith(".")
        assert memory(server) - before < MOST_GROWTH
    assert is_served(server)


def test_who_asks_without_end_and_reads_nothing_is_left(server: serve.Server) -> None:
    kernel = kernel_of(read_page(server))
    asks = {"comm_id": "all", "data": {"method": "request_states"}}
    with connected(server, kernel) as link:
        link.send_binary(frame("comm_open", content=STATES, metadata={"version": "1.0.0"}))
        link.recv()
        before = memory(server)
        with contextlib.suppress(OSError):  # closed while we send
            for _ in range(300):
                link.send_binary(frame("comm_msg", content=asks))
        assert status(f"{server.url}voila/static/voila.js") == 200
        assert within(PATIENCE_S, lambda: _is_closed(link))
        assert memory(server) - before < MOST_GROWTH


def _is_closed(link: Any) -> bool:
    """Whether the other end has gone; nothing is read for it."""
    try:
        for _ in range(2):
            link.send_binary(frame())
    except OSError:
        return True
    return False


def test_a_kernel_that_works_ends_when_its_page_is_lost(server: serve.Server) -> None:
    address = f"{server.url}api/kernels/"
    kernel, other = (kernel_of(read_page(server)) for _ in range(2))
    with connected(server, other):
        with connected(server, kernel) as link:
            link.send_binary(frame("comm_open", content=WORK))
            while b'"busy"' not in link.recv():
                pass
        assert within(PATIENCE_S, lambda: status(f"{address}{kernel}") == 404)
        assert status(f"{address}{other}") == 200


def test_a_kernel_has_so_many_sockets_and_no_more(server: serve.Server) -> None:
    kernel = kernel_of(read_page(server))
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(connected(server, kernel)) for _ in range(9)]
        for link in links[:-1]:
            link.send_binary(frame())
            while b"kernel_info_reply" not in link.recv():
                pass
        code, words = farewell(links[-1])
        assert code == TOO_MUCH and "connections" in words
        links[0].shutdown()
        assert within(PATIENCE_S, lambda: _has_room(server, kernel))


def _has_room(server: serve.Server, kernel: str) -> bool:
    with connected(server, kernel) as link:
        link.send_binary(frame())
        opcode, _ = link.recv_data()
        return opcode != 8


def test_messages_that_come_too_fast_are_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    room = settings_module("room")
    now = 1000.0
    monkeypatch.setattr(room.time, "monotonic", lambda: now)
    for size, most in ((100, room.PACE), (MB, room.BYTES_A_SECOND / MB)):
        traffic, read = room.Traffic(), 0
        end = now + 10
        while now < end:
            now += max(0.0, traffic.rest(size))
            read += 1
        assert read <= most * (10 + room.BURST_S) + 1
        assert read >= most * 10 * 0.99
        now += 100
        assert traffic.rest(100) < 0, "a visitor who was quiet does not wait"


def test_what_a_kernel_has_begun_with_waits_no_more() -> None:
    room = settings_module("room")
    traffic = room.Traffic()
    for i in range(100):
        assert traffic.takes(str(i), 10 * MB)
        traffic.begins(str(i))
    assert traffic.takes("a", 20 * MB) and not traffic.takes("b", 5 * MB)
    traffic.begins("another's")
    assert not traffic.takes("b", 5 * MB)
    traffic.begins("a")
    assert all(traffic.takes(str(i), 100) for i in range(5000))
    assert not traffic.takes("5000", 100)


def test_what_a_lost_page_missed_is_kept_up_to_a_bound() -> None:
    kept = settings_module("room").Buffer()
    for _ in range(100):
        kept.append(("iopub", [bytes(MB)] * 2))
    assert 0 < sum(len(part) for _, parts in kept for part in parts) <= 10 * MB


# --- who may open a page ------------------------------------------------------------------------
def test_a_foreign_page_starts_no_kernel_and_a_link_does(server: serve.Server) -> None:
    def opened(site: str, mode: str, dest: str) -> int:
        names = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        return ask(server.url, **names)[0]

    for site in ("cross-site", "same-site"):
        for mode, dest in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")):
            assert opened(site, mode, dest) == 403
        assert opened(site, "navigate", "document") == 200
    assert opened("none", "navigate", "document") == 200


def test_without_a_class_there_are_places_as_memory_and_files_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = settings_module("room")
    assert room.Room().most == limits.places() > 1
    total = psutil.virtual_memory().total
    assert limits.places() * 2**29 <= max(total, 2**30)
    monkeypatch.setattr(limits, "files", lambda: 1024)
    assert limits.places() * 35 < 1024
    assert room.Room(most=7).most == 7


class Guests:
    """A room without kernels: who gets in has a page that opens until they leave."""

    def __init__(self, most: int) -> None:
        self.room = settings_module("room").Room(most=most)
        self.pages: list[contextlib.ExitStack] = []

    def asks(self, address: str) -> bool:
        if self.room.full(address):
            return False
        self.pages.append(contextlib.ExitStack())
        self.pages[-1].enter_context(self.room.visit(address))
        return True

    def leaves(self) -> None:
        """The first who came."""
        self.pages.pop(0).close()


def test_who_has_fewest_places_comes_first_then_who_waits_longest() -> None:
    guests = Guests(3)
    assert all(guests.asks("greedy") for _ in range(3))
    assert not any(guests.asks(who) for who in ("greedy", "late", "later", "greedy"))
    guests.leaves()
    assert [guests.asks(who) for who in ("greedy", "later", "late")] == [False, False, True]
    guests.leaves()
    assert [guests.asks(who) for who in ("greedy", "later")] == [False, True]


def test_who_waits_no_more_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    guests, clock = Guests(1), settings_module("room").time
    assert guests.asks("a") and not guests.asks("left")
    guests.leaves()
    assert not guests.asks("b")
    now = clock.monotonic() + 20
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    assert guests.asks("b")


def test_an_address_behind_a_proxy_is_read_where_the_operator_says_so() -> None:
    room = settings_module("room")

    # The first of them is the visitor's own word.
    named = SimpleNamespace(remote_ip=HERE, headers={"X-Forwarded-For": "10.0.0.1, 10.0.0.2"})
    assert room.Room().address_of(named) == HERE
    assert room.Room(behind_proxy=True).address_of(named) == "10.0.0.2"
    unnamed = SimpleNamespace(remote_ip=HERE, headers={})
    assert room.Room(behind_proxy=True).address_of(unnamed) == HERE
