"""Kernels are forked from one warm process: apart from each other, and never left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import psutil
import pytest

from explorer.engine import compiling
from explorer.serve import server as serve
from explorer.serve import warm
from tests.serve.conftest import FORKED
from tests.serve.visits import (
    PATIENCE_S,
    answers,
    ask,
    connected,
    frame,
    kernel_of,
    read_page,
    within,
)

pytestmark = pytest.mark.skipif(not warm.POSSIBLE, reason="kernels are forked on Linux alone")

WORDS = warm.WORDS.partition("{")[0]


def kernels(server: serve.Server) -> list[psutil.Process]:
    """The processes of the server's kernels: forks of the warm one, which may also compile."""
    return [each for child in psutil.Process(server.process.pid).children()
            for each in child.children() if "explorer.serve.warm" in each.cmdline()]  # fmt: skip


def warm_one(server: serve.Server) -> psutil.Process:
    """The warm process."""
    (found,) = (child for child in psutil.Process(server.process.pid).children()
                if "explorer.serve.warm" in child.cmdline())  # fmt: skip
    return found


def test_a_forked_kernel_opens_the_page_with_its_widgets(plain_server: serve.Server) -> None:
    page = read_page(plain_server)
    assert "forked: True" in page and "threads: 1" in page
    assert "Button(description" in page
    assert answers(plain_server, kernel_of(page))
    # The page asks for its widgets over a target that is registered in a kernel alone.
    states = {"comm_id": "all", "target_name": "jupyter.widget.control", "data": {}}
    asks = {"comm_id": "all", "data": {"method": "request_states"}}
    with connected(plain_server, kernel_of(page)) as link:
        link.send_binary(frame("comm_open", content=states, metadata={"version": "1.0.0"}))
        link.send_binary(frame("comm_msg", content=asks))
        while b"update_states" not in (said := link.recv()):
            pass
        assert b"ButtonModel" in said


def test_two_kernels_draw_other_numbers_and_see_nothing_of_each_other(
    plain_server: serve.Server,
) -> None:
    one, two = (read_page(plain_server) for _ in range(2))
    drawn = [re.findall(r"numbers: (\S+) (\S+) (\S+)", page)[0] for page in (one, two)]
    assert all(a != b for a, b in zip(*drawn, strict=True))
    assert all(re.findall(r"seen: (.*)", page) == [str((None, None))] for page in (one, two))


TAKES = """
import os, numpy, torch
from explorer.page.words.failures import NO_MEMORY, failure
for take in (lambda: numpy.ones(10**8), lambda: torch.ones(10**8)):
    try:
        take()
    except Exception as error:
        print('sentence: ' + str(failure(error) == NO_MEMORY))
print(f'nice: {os.nice(0)}')
print(f'taken: {numpy.ones(10**6).sum()} cores: {os.sched_getaffinity(0)}')
"""


def test_a_kernel_of_a_class_has_a_core_and_so_much_memory_and_ends_with_its_server() -> None:
    with serve.start(port=0, cells=(TAKES,), class_size=5, memory=300 * 10**6) as server:
        pages = [read_page(server) for _ in range(2)]
        assert all(page.count("sentence: True") == 2 for page in pages)
        cores = [re.findall(r"taken: 1000000.0 cores: \{(\d+)\}", page)[0] for page in pages]
        assert len(set(cores)) == min(2, len(os.sched_getaffinity(0)))
        assert int(re.findall(r"nice: (-?\d+)", pages[0])[0]) > os.nice(0)
        assert answers(server, kernel_of(pages[0]))
        all_end_with_a_killed_server(server)


def all_end_with_a_killed_server(server: serve.Server) -> None:
    left = [warm_one(server), *kernels(server)]
    assert len(left) == 3
    server.process.kill()
    _, alive = psutil.wait_procs(left, PATIENCE_S)
    assert not alive


def test_a_killed_warm_process_is_replaced_and_its_kernels_live_on(
    plain_server: serve.Server,
) -> None:
    kernel = kernel_of(read_page(plain_server))
    with connected(plain_server, kernel):
        before = warm_one(plain_server)
        before.kill()
        before.wait(PATIENCE_S)
        assert answers(plain_server, kernel)
        assert "forked: True" in read_page(plain_server)
        assert warm_one(plain_server).pid != before.pid


def test_a_killed_kernel_is_told_as_gone(plain_server: serve.Server) -> None:
    known = {each.pid for each in kernels(plain_server)}
    kernel = kernel_of(read_page(plain_server))
    (process,) = (each for each in kernels(plain_server) if each.pid not in known)
    with connected(plain_server, kernel):
        process.kill()
        address = f"{plain_server.url}api/kernels/{kernel}"
        assert within(PATIENCE_S, lambda: ask(address)[0] == 404)


def test_where_no_kernel_can_be_forked_they_start_as_ever_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(warm.FORK, "0")
    with serve.start(port=0, cells=(FORKED,)) as server:
        for _ in range(2):
            assert "forked: False" in read_page(server)
    assert capfd.readouterr().err.count(WORDS) == 1


def test_a_warm_process_that_cannot_begin_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    failing = warm.Warm([sys.executable, "-c", "raise SystemExit(3)"])
    for _ in range(2):
        with pytest.raises(warm.ForkError) as raised:
            failing.fork({"argv": []})
        failing.say_once(raised.value)
    failing.close()
    said = capfd.readouterr().err
    assert said.count(WORDS) == 1


def test_a_warm_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "ANSWER_S", 0.2)
    hanging = warm.Warm([sys.executable, "-c", "print('{}', flush=True); input(); input()"])
    with pytest.raises(warm.ForkError):
        hanging.fork({"argv": []})
    hanging.close()


def test_a_rehearsed_process_can_fork_and_its_next_page_works() -> None:
    program = """
import ipykernel.ipkernel
from explorer.page.apps.rehearsal import rehearse
from explorer.serve import warm
for _ in rehearse():
    warm.check_forkable()
warm.check_forkable()
from explorer.page.apps.explorer import App
print(len(App().panels))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # as the server starts it
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1


def test_the_warm_process_goes_on_while_loops_are_compiled(monkeypatch) -> None:
    monkeypatch.setattr(compiling, "all_kept", lambda: True)
    assert list(warm.while_compiling()) == []
    monkeypatch.setattr(compiling, "all_kept", lambda: False)
    waits = "import sys; sys.stdin.read()"
    reading, writing = os.pipe()
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        monkeypatch.setattr(warm, "COMPILING", (sys.executable, "-c", waits))
        running = warm.while_compiling()
        assert next(running) and next(running)
        os.close(writing)
        assert all(running)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)


SPOILED = {
    "thread": "from threading import Event, Thread; Thread(target=Event().wait, daemon=1).start()",
    "ZeroMQ": "import zmq; zmq.Context.instance()",
    "Button": "import ipywidgets; made = ipywidgets.Button()",
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_does_not_survive_a_fork_is_refused(what: str) -> None:
    program = f"{SPOILED[what]}\nfrom explorer.serve import warm\nwarm.check_forkable()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ForkError" in done.stderr and what in done.stderr


def test_a_forked_process_is_watched_to_its_end() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        forked = warm.Forked(child.pid)
        assert forked.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0.1)
        forked.kill()
        assert forked.wait() == 0
        forked.kill()  # a second call does nothing
    with pytest.raises(warm.ForkError):
        warm.Forked(child.pid)
