"""Serve the app with stock Voila: one kernel per visitor, and no host but our own.

with start() as server:
    print(server.url)
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self

from explorer.research.pages import write_pages
from explorer.serve import COMPILING, EVERYWHERE, TEACHER
from explorer.serve.network import address_on_network

# Holds Voila's settings file, under nbconvert/templates the page's template, and under kernels
# a Python kernel that keeps no history file and only logs errors.
SETTINGS = Path(__file__).with_name("voila")
HOSTS = "MARGIN_EXPLORER_HOSTS"  # read by voila.py
CLASS = "MARGIN_EXPLORER_CLASS"  # signs scores of a class, else ""; read by page/session.py
FOLDERS = "MARGIN_EXPLORER_FOLDERS"  # read by page/apps/digits.py; likewise
NETWORK = "MARGIN_EXPLORER_NETWORK"  # this machine's address there; read by page/session.py
NICENESS = 5  # arbitrary: of a class's kernels, so that the server passes on clicks first
MEMORY = 2**30  # arbitrary: twice what was measured after every part of the page was used
LOOPBACK = ("127.0.0.1", "localhost", "::1")
THEMES = ("light", "dark")
DEFAULT_PORT = 8866  # Voila's own
LAST_PORT = 65535
BASE_PATH = re.compile(r"/((?!\.+/)[\w.~-]+/)*")
HOST_NAME = re.compile(r"[\w-][\w.-]*|[\da-fA-F:.]+")
CELLS = ("from explorer import app\n\napp();",)
# Arbitrary: a loaded two-core machine starts Voila in under ten seconds.
START_WITHIN_S = 60.0
STOP_WITHIN_S = 10.0  # arbitrary


class ServeError(RuntimeError):
    """The server could not be started; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Server:
    """A running server: its address, and the process to end.

    Attributes:
        url: the address of the page, ending in a slash.
        process: the Voila process; its kernels are its children.
        folder: the temporary folder that holds the notebook.
        teacher: the address of the teacher's page, or "" where there is no class.
    """

    url: str
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]
    teacher: str = ""

    def __enter__(self) -> Self:
        """Return the running server itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the server."""
        self.close()

    def wait(self) -> int:
        """Wait until the server ends by itself, and return its exit status."""
        return self.process.wait()

    def close(self) -> None:
        """End the server and every kernel of it; a second call does nothing."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.folder.cleanup()


def serve(
    port: int = DEFAULT_PORT,
    open_browser: bool = True,
    theme: str = "light",
    host: str = "127.0.0.1",
    block: bool = True,
    allow_hosts: tuple[str, ...] = (),
    class_size: int = 0,
    per_address: int = 0,
    behind_proxy: bool = False,
    base_path: str = "/",
) -> Server:
    """Start the app, print its address, open it, and (with `block`) stay until interrupted.

    Args:
        port: the port to listen on; when it is taken, a free one is used instead.
        open_browser: open the page, where there is a screen to open it on.
        theme: "light" or "dark".
        host: the interface to listen on; the default is reached from this machine only.
        block: stay until the server ends or the user interrupts, then close it.
        allow_hosts: further names that visitors may use for this server, such as a proxy's; a
            request for any other is refused. With one, visitors are taken to come from elsewhere.
        class_size: how many visitors have a place at once; further ones wait on a page that tries
            again by itself. Each kernel has one core and MEMORY bytes. A class opens when all loops
            are compiled. 0: as many places as memory and open files suffice for, kernels without
            these limits, and loops are compiled meanwhile.
        per_address: how many places one address may have, but this machine's own; 0: all.
        behind_proxy: take a visitor's address from X-Forwarded-For, as the last proxy wrote it;
            only where nobody reaches the server but through that proxy.
        base_path: what comes between host and page, such as /margin/, for a proxy that keeps it.

    Raises:
        ServeError: a library is missing, or the server does not come up.
        ValueError: an argument has no meaning.
    """
    if class_size:  # thirty kernels that compile at once would find no memory
        subprocess.run(COMPILING, check=False)
    server = start(
        port=port, theme=theme, host=host, allow_hosts=allow_hosts, class_size=class_size,
        per_address=per_address, behind_proxy=behind_proxy, base_path=base_path,
    )  # fmt: skip
    try:
        print(f"Margin Explorer: {server.url}", flush=True)
        if host in EVERYWHERE and (own := address_on_network()):
            print(f"On the network: {server.url.replace(LOOPBACK[0], own)}", flush=True)
        if server.teacher:
            print(f"For the teacher alone: {server.teacher}", flush=True)
        if open_browser and _has_screen():
            webbrowser.open(server.url)
        if not block:
            return server
        print("Each visitor has a kernel of their own. Stop with Ctrl-C.", flush=True)
        signal.signal(signal.SIGTERM, _leave)
        with contextlib.suppress(KeyboardInterrupt):
            server.wait()
    except BaseException:
        server.close()
        raise
    server.close()
    return server


def start(
    port: int = DEFAULT_PORT,
    theme: str = "light",
    host: str = "127.0.0.1",
    cull_after_s: int | None = None,
    cull_every_s: int | None = None,
    cells: tuple[str, ...] = CELLS,
    allow_hosts: tuple[str, ...] = (),
    class_size: int = 0,
    per_address: int = 0,
    behind_proxy: bool = False,
    memory: int = MEMORY,
    base_path: str = "/",
) -> Server:
    """Start the server and return as soon as it listens; nothing is printed or opened.

    Args:
        port: as in `serve`.
        theme: as in `serve`.
        host: as in `serve`.
        cull_after_s: a kernel without a page is ended after this many idle seconds (75).
        cull_every_s: how often the server looks for such kernels (15).
        cells: the code of the notebook that is served, one entry per cell.
        allow_hosts: as in `serve`.
        class_size: as in `serve`.
        per_address: as in `serve`.
        behind_proxy: as in `serve`.
        memory: bytes that a kernel of a class may take beside those that all share.
        base_path: as in `serve`.

    Raises:
        ServeError: a library is missing, or the server does not come up.
        ValueError: an argument has no meaning.
    """
    _check(port, theme, allow_hosts, class_size, per_address)
    if not BASE_PATH.fullmatch(base_path):
        raise ValueError(f"base_path must be like /margin/ or /; got {base_path!r}")
    if importlib.util.find_spec("voila") is None:
        raise ServeError("Serving needs Voila. Install it: pip install 'margin-explorer[app]'")
    folder = tempfile.TemporaryDirectory(prefix="margin-explorer-", ignore_cleanup_errors=True)
    first = write_pages(Path(folder.name), cells, opening=cells == CELLS)
    port = free_port(host, port)
    command = [
        *(sys.executable, "-m", "explorer.serve", str(first)),
        *("--no-browser", f"--Voila.ip={host}", f"--port={port}", "--Voila.port_retries=0"),
        *(f"--theme={theme}", "--Voila.log_level=ERROR", f"--Voila.base_url={base_path}"),
    ]
    if class_size:
        share = {"memory": memory, "one_core": True, "niceness": NICENESS}
        command += [f"--ForkProvisioner.{name}={value}" for name, value in share.items()]
        command.append(f"--Room.most={class_size}")
    key, board = (secrets.token_urlsafe(12) if class_size else "" for _ in range(2))
    command += [f"--Room.most_each={per_address}", f"--Room.behind_proxy={behind_proxy}"]
    for name, value in (("cull_idle_timeout", cull_after_s), ("cull_interval", cull_every_s)):
        if value is not None:
            command.append(f"--MappingKernelManager.{name}={value}")
    # In a session of its own, so that an interrupt reaches us alone and we end it in good order.
    # Its standard input is a pipe from us: when we are gone, for whatever reason, it ends itself.
    process = subprocess.Popen(
        command,
        env={**environment(host, allow_hosts), CLASS: board, TEACHER: key},
        cwd=folder.name,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    url = f"http://{_host_name(host)}:{port}{base_path}"
    server = Server(url, process, folder, f"{url}teacher?key={key}" if key else "")
    try:
        wait_until_listening(process, host, port)
    except BaseException:
        server.close()
        raise
    return server


def _check(
    port: int, theme: str, allow_hosts: tuple[str, ...], class_size: int, per_address: int
) -> None:
    """Raise ValueError for an argument of `start` that has no meaning."""
    if not 0 <= port <= LAST_PORT:
        raise ValueError(f"port must be 0 (any free one) to {LAST_PORT}; got {port}")
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}; got {theme!r}")
    for name, count in (("class_size", class_size), ("per_address", per_address)):
        if count < 0:
            raise ValueError(f"{name} is a number of visitors, or 0 for no limit; got {count}")
    wrong = [name for name in allow_hosts if not HOST_NAME.fullmatch(name)]
    if wrong:
        raise ValueError(
            "an allowed host is a name or an address alone, without http:// and port, such as "
            f"class.example.org; got {wrong[0]!r}"
        )


def environment(host: str, allow_hosts: tuple[str, ...]) -> dict[str, str]:
    """Return our environment, with the paths of our settings and template first."""
    env = dict(os.environ)
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"):
        env[name] = os.pathsep.join(filter(None, (str(SETTINGS), env.get(name))))
    # Visitors share the cores: threads of one kernel would slow those of the others and of
    # the browser's. A user who knows better may set it.
    env.setdefault("OMP_NUM_THREADS", "1")
    # Who visits this machine alone is its user. On a network, or through a proxy, what this
    # machine's folders hold is not theirs to see.
    env.setdefault(FOLDERS, "1" if host in LOOPBACK and not allow_hosts else "0")
    env[HOSTS] = ",".join(allow_hosts)
    env[NETWORK] = address_on_network() if host in EVERYWHERE else ""
    return env


def free_port(host: str, wanted: int) -> int:
    """Return the port wanted, or, if it is taken, one that the system gives."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in (wanted, 0):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # A port of a server that just ended is free to us, as it is to Voila.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ServeError(f"No port to listen on at {host!r}. Is it an address of this machine?")


def wait_until_listening(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    """Return once a connection succeeds. No page is requested: that would start a kernel."""
    end = time.monotonic() + START_WITHIN_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ServeError(
                f"Voila ended with status {process.returncode} before it listened; "
                "its messages above say why."
            )
        with contextlib.suppress(OSError):
            socket.create_connection((_host_name(host).strip("[]"), port), timeout=1.0).close()
            return
        time.sleep(0.05)
    raise ServeError(f"Voila did not listen on port {port} within {START_WITHIN_S:.0f} s.")


def _host_name(host: str) -> str:
    """Return a host to visit: "all interfaces" is no address, so it becomes this machine."""
    host = LOOPBACK[0] if host in EVERYWHERE else host
    return f"[{host}]" if ":" in host else host


def _has_screen() -> bool:
    """Return whether a browser has a screen; without one only text browsers would start."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    """End in good order when asked to, so that no kernel is left behind."""
    raise KeyboardInterrupt
