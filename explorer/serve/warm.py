"""Kernels forked from one warm process, which has imported all that a page needs.

A kernel started afresh spends seconds on importing PyTorch and holds a copy of its own; a forked
one is there at once and shares those pages of memory. Two halves: `Warm` is the server's, `main`
is the program of the warm process. A line of JSON asks for a kernel; a line of JSON answers.

Between the halves: the server writes requests to the warm process's standard input and reads its
answers; when the server is gone the requests end, and so does the warm process. Every kernel holds
the reading end of a pipe that nobody writes to: the server alone has its other end, so a kernel
reads its end when the server is gone, for whatever reason. It outlives the warm process.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from explorer.serve import COMPILING, TEACHER

POSSIBLE = sys.platform == "linux"  # macOS forbids much after a fork; Windows has none
PROGRAM = (sys.executable, "-m", "explorer.serve.warm")
LAUNCHER = ["-m", "ipykernel_launcher"]  # what a command must begin with, after the interpreter
FORK = "MARGIN_EXPLORER_FORK"  # 0: kernels are started one by one
MOST_NICE = 10  # arbitrary
PATIENCE_S = 0.1  # between two looks at it; arbitrary
REHEARSAL = "explorer.page.apps.rehearsal"  # by name, as a notebook names a page: another layer
MOST_STARTS = 3  # without a kernel; arbitrary
READY_S, ANSWER_S = 120.0, 30.0  # of patience with a warm process; arbitrary
OWN = Path("/proc/self")


class ForkError(RuntimeError):
    """No kernel could be forked; the message says why."""


# --- the server's half ------------------------------------------------------------------------
class Warm:
    """The warm process, kept alive: where it ends it is replaced, unless that goes on and on."""

    def __init__(
        self, program: Sequence[str] = PROGRAM, env: Mapping[str, str] | None = None
    ) -> None:
        """Start it; nothing waits until it is ready. `env` is added to our environment."""
        if not POSSIBLE:
            raise ForkError("this system does not fork a Python with its libraries")
        if os.environ.get(FORK) == "0":
            raise ForkError(f"{FORK} is 0")
        self._program = list(program)
        self._env = {**os.environ, **(env or {})}
        self._env.pop(TEACHER, None)  # kernels show theirs, and would show ours
        self._line = threading.Lock()  # one request at a time
        self._said = threading.Event()
        self._ready, self._starts = False, 0
        # Its writing end is never passed on: it closes when this process ends.
        self._held, self._alive = os.pipe()
        with self._line:  # it may end, and be replaced, before it is noted here
            self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a warm process, and a thread that replaces it when it ends."""
        self._starts += 1
        process = subprocess.Popen(
            [*self._program, str(self._held)],
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._held],
        )
        threading.Thread(target=self._replace, args=(process,), daemon=True).start()
        return process

    def _replace(self, ended: subprocess.Popen[bytes]) -> None:
        """Wait until it ends, then start the next before a visitor asks for it."""
        ended.wait()
        with self._line, contextlib.suppress(ForkError):
            if ended is self._process:
                self._living()

    def _living(self) -> subprocess.Popen[bytes]:
        """Return the warm process, a new one if it has ended."""
        if self._process.poll() is not None:
            if self._starts >= MOST_STARTS:  # the next would end likewise
                raise ForkError(f"the warm process ended with status {self._process.returncode}")
            self._ready = False
            _close_pipes(self._process)
            self._process = self._start()
        return self._process

    def close(self) -> None:
        """End the warm process and every kernel of it; it is not replaced."""
        with self._line:
            self._ready = False
            self._process.kill()
            self._process.wait()
            _close_pipes(self._process)
            os.close(self._alive)
            os.close(self._held)

    @property
    def pid(self) -> int:
        """Return the warm process's number."""
        return self._process.pid

    def fork(self, request: Mapping[str, Any]) -> int:
        """Return the number of a new kernel's process; waits until the warm process is ready.

        Args:
            request: `argv`, what follows LAUNCHER in the command; `env`; `cwd`, or None; `memory`,
                how many bytes it may take beside those shared, or 0; `core`, the one processor core
                to run on, or None; `niceness`, how much it stands back behind the server.

        Raises:
            ForkError: there is none.
        """
        line = (json.dumps(dict(request)) + "\n").encode()
        with self._line:
            for _ in range(MOST_STARTS):  # where it was killed meanwhile, its successor is asked
                process = self._living()
                assert process.stdin is not None and process.stdout is not None
                with contextlib.suppress(OSError):
                    if not self._ready:
                        self._ready = _read_line(process.stdout, READY_S) == READY
                    if self._ready:
                        process.stdin.write(line)
                        process.stdin.flush()
                    answer = _read_line(process.stdout, ANSWER_S) if self._ready else b""
                    if answer:
                        self._starts = 0
                        return int(json.loads(answer)["pid"])
                process.kill()  # it may hang
                process.wait()
        raise ForkError("the warm process ended while it was asked")

    def say_once(self, error: Exception) -> None:
        """Say in the log, the first time alone, that kernels are started afresh, and why."""
        if not self._said.is_set():
            self._said.set()
            print(WORDS.format(error), file=sys.stderr, flush=True)


def _read_line(pipe: IO[bytes], patience_s: float) -> bytes:
    """Return the next line, or b"" where none comes."""
    watch = select.poll()
    watch.register(pipe, select.POLLIN)
    return pipe.readline() if watch.poll(1000 * patience_s) else b""


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of a process that has ended."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # what was not sent any more
            if pipe:
                pipe.close()


# The server's; None where kernels are started one by one.
current: Warm | None = None
WORDS = "Kernels are started one by one, which takes each visitor seconds more: {}."


class Forked:
    """A forked kernel as `subprocess.Popen` would have it: not our child, but watched as well."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        """Watch the process.

        Raises:
            ForkError: it is gone already, or this system cannot watch it.
        """
        self.pid = pid
        self.returncode: int | None = None
        try:
            self._end = os.fdopen(os.pidfd_open(pid), "rb", buffering=0)
        except OSError as error:
            raise ForkError(f"a forked kernel cannot be watched ({error})") from error
        self._watch = select.poll()  # select() takes no descriptor above 1023
        self._watch.register(self._end, select.POLLIN)

    def poll(self) -> int | None:
        """Return None while it lives, then 0: its status is not told to us."""
        if self.returncode is None and self._watch.poll(0):
            self.returncode = 0
            self._end.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return when it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not, after that many seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(["kernel"], timeout or 0.0)
            time.sleep(0.02)
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._end.fileno(), number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


# --- the warm process's half ------------------------------------------------------------------
READY = b"{}\n"
FIRST_S = 2.5  # before and after the first: each part of the rest takes a second; arbitrary
_FOLDER = str(Path.cwd())


def main() -> None:
    """Import, then fork a kernel for each line of standard input, until it ends."""
    held = int(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    os.chdir(os.sep)  # the server's folder goes with the server, maybe in the middle of the imports
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects the children
    rest = _prepare()
    next(rest)
    answers.write(READY)
    answers.flush()
    asked = 0
    while True:
        # The rest is done while nobody waits, nor the first page opens. There is one request at a
        # time, so none is buffered.
        patience = FIRST_S if asked < 2 else 0.0
        while not select.select([0], [], [], patience)[0] and next(rest, False):
            patience = 0.0
        asked += 1
        line = sys.stdin.buffer.readline()
        if not line:
            return
        check_forkable()
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            answers.close()
            become_kernel(request, held)
        answers.write((json.dumps({"pid": pid}) + "\n").encode())
        answers.flush()


def _prepare() -> Iterator[bool]:
    """Import what a page needs, and rehearse it part by part; yield when a page can be forked.

    What is there is put out of the garbage collector's reach: a collection would write to every
    page of memory, and so copy it into each child.
    """
    import gc
    from importlib import import_module

    gc.disable()  # what imports make stays; to look through it again and again is a tenth of them
    for name in ("ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.debugger"):
        import_module(name)
    rehearsal = import_module(REHEARSAL)
    gc.enable()
    for _ in rehearsal.rehearse():
        gc.collect()
        gc.freeze()
        yield True
        yield from while_compiling()
    gc.collect()
    gc.freeze()
    yield True


def while_compiling() -> Iterator[bool]:
    """Have loops compiled that no disk keeps yet; yield until it is done, as pages can be forked.

    In a process of its own that stands back behind all others: here no visitor could be answered.
    """
    from explorer.engine.compiling import all_kept

    if all_kept():
        return
    running = subprocess.Popen(COMPILING, preexec_fn=lambda: os.nice(MOST_NICE))
    while running.poll() is None:
        time.sleep(PATIENCE_S)
        yield True


def check_forkable() -> None:
    """Raise ForkError where a child would not work: threads, sockets and widgets do not survive."""
    import zmq
    from ipywidgets.widgets import widget

    threads = len(list((OWN / "task").iterdir()))
    if threads > 1:
        raise ForkError(f"{threads - 1} threads besides the first were started by an import")
    if zmq.Context._instance is not None:
        raise ForkError("an import made a ZeroMQ context")
    if widget._instances:
        made = ", ".join(sorted(type(each).__name__ for each in widget._instances.values()))
        raise ForkError(f"an import made widgets, which no page would know: {made}")


def become_kernel(request: Mapping[str, Any], held: int) -> NoReturn:
    """Be a kernel, in the child, and end."""
    status = 1
    try:
        os.setsid()  # a group of its own, that its workers can be ended with it
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(request["env"])
        if request.get("cwd"):
            os.chdir(request["cwd"])
        _take_share(request["memory"], request["core"], request["niceness"])
        _draw_seeds()
        threading.Thread(target=_end_with_server, args=(held,), daemon=True).start()
        _run_kernel(list(request["argv"]))
        status = 0
    finally:
        # Not through the caller: its loop is the warm process's. Python's own end is left out too,
        # as it would copy what is shared.
        os._exit(status)


def _take_share(memory: int, core: int | None, niceness: int) -> None:
    """Come after the server, and take no more than what is allowed."""
    import resource

    os.nice(niceness)
    # Where each session has a share of the processor, niceness counts within it alone.
    with contextlib.suppress(OSError):
        (OWN / "autogroup").write_text(str(niceness))
    if core is not None:
        os.sched_setaffinity(0, {core})
    if memory:
        shared = int((OWN / "status").read_text().partition("VmData:")[2].split()[0])  # kB
        limit = shared * 1024 + memory
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _draw_seeds() -> None:
    """Draw every generator's seed anew: a forked kernel would else repeat its siblings' numbers."""
    import numpy as np
    import torch

    random.seed()
    np.random.seed(int.from_bytes(os.urandom(4), "little"))  # noqa: NPY002 - the global one
    torch.seed()


def _end_with_server(held: int) -> None:
    """Wait until the server is gone, then end with all our workers."""
    os.read(held, 1)  # nobody writes: it returns at the end
    os.killpg(0, signal.SIGKILL)


def _run_kernel(argv: list[str]) -> None:
    """Run until the kernel is shut down."""
    import atexit

    import ipywidgets
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = ["ipykernel_launcher", *argv]
    if sys.path[0] == _FOLDER:
        del sys.path[0]  # as the launcher does; the kernel puts its own there
    # A parent that is always there: without one it prints how to attach a console.
    kernel = IPKernelApp.instance(parent_handle=1)
    kernel.initialize(argv)
    # It registers this when it is imported inside a kernel, and it was imported before.
    ipywidgets.register_comm_target()
    kernel.start()
    atexit._run_exitfuncs()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the server is gone
        main()
