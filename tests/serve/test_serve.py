"""The served page names no foreign host, and no kernel outlives its page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from explorer.research.pages import pages
from explorer.serve import server as serve
from explorer.serve import warm
from tests.serve.conftest import BUTTON, CULL_AFTER_S, CULL_EVERY_S, FOLDERS, WORKS
from tests.serve.visits import PATIENCE_S, ask, connected, kernel_of, read_page, status, within


@pytest.mark.parametrize("theme", serve.THEMES)
def test_page_names_no_foreign_host_and_says_what_it_waits_for(
    server: serve.Server, theme: str
) -> None:
    page = read_page(server, f"?theme={theme}")
    hosts = set(re.findall(r"(?:https?:|wss?:|[\"'(=]\s*)//([\w.-]+)", page))
    # The name space of drawings is a name, not an address that is asked.
    assert hosts <= {"www.w3.org"}
    assert "<title>Margin Explorer</title>" in page
    assert "is starting" in page
    assert f"theme-{theme}" in page
    assert "Button(description" in page
    assert not [cell for cell in WORKS if cell in page]  # the sources are not shown
    assert "widgets" in page


def test_further_pages_are_served_and_nothing_else(server: serve.Server) -> None:
    served = {path.name for path in Path(server.folder.name).glob("*.ipynb")}
    assert served == {"explorer.ipynb", *(page.name for page in pages())}
    page = read_page(server, "voila/render/membership.ipynb")
    assert kernel_of(page)
    assert "from explorer import" not in page  # the sources are not shown
    assert status(f"{server.url}voila/render/other.ipynb") == 403


def test_every_visit_has_a_kernel_that_ends_with_its_page_or_is_culled(
    server: serve.Server,
) -> None:
    def visit() -> tuple[str, str]:
        kernel = kernel_of(read_page(server))
        return kernel, f"{server.url}api/kernels/{kernel}"

    kept, kept_url = visit()
    with connected(server, kept):
        gone, gone_url = visit()
        # This one is connected too, so that it is the farewell that ends it and no idle time.
        with connected(server, gone):
            assert status(gone_url) == 200
            # What Voila's page sends: a POST with no cookie and no token.
            assert status(f"{server.url}voila/api/shutdown/{gone}", "POST") == 204
            assert status(gone_url) == 404
            assert status(kept_url) == 200
        left, left_url = visit()  # nobody is connected to this one
        assert len({kept, gone, left}) == 3
        assert within(PATIENCE_S, lambda: status(left_url) == 404)
        time.sleep(CULL_AFTER_S + 2 * CULL_EVERY_S)
        assert status(kept_url) == 200
    assert within(PATIENCE_S, lambda: status(kept_url) == 404)


def test_taken_port_is_replaced_by_a_free_one() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        assert serve.free_port("127.0.0.1", taken) not in (0, taken)
    assert serve.free_port("127.0.0.1", taken) == taken


def test_settings_file_sends_frames_at_once_and_keeps_its_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

    calls: list[object] = []
    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", lambda self: calls.append("in"))
    config = Config()
    for _ in range(2):  # read twice, as Voila may
        runpy.run_path(str(serve.SETTINGS / "voila.py"), {"get_config": lambda: config})

    class Handler:
        def set_nodelay(self, value: bool) -> None:
            calls.append(value)

    checked = config.Voila.kernel_websocket_connection_class
    assert checked is config.ServerApp.kernel_websocket_connection_class
    connection = checked.__new__(checked)
    monkeypatch.setattr(checked, "websocket_handler", Handler())
    asyncio.run(connection.connect())
    assert calls == [True, "in"]
    # Ten seconds until a player without a browser pauses, then idle, then the next look.
    culling = config.MappingKernelManager
    assert 10 + culling.cull_idle_timeout + culling.cull_interval < 120


def test_server_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(serve.ServeError, match=r"margin-explorer\[app\]"):
        serve.start()


@pytest.mark.parametrize(("wrong", "words"), [
    ({"theme": "blue"}, "light"), ({"port": 99999}, "65535"), ({"port": -1}, "65535"),
    ({"base_path": "/../"}, "base_path"), ({"base_path": "/a/./"}, "base_path"),
    ({"class_size": -1}, "class_size"), ({"per_address": -1}, "per_address"),
])  # fmt: skip
def test_wrong_argument_is_named(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        serve.start(**wrong)  # type: ignore[arg-type]


def test_serve_prints_the_address_and_closes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("BROWSER", "some-browser")
    monkeypatch.setenv(warm.FORK, "0")  # no page is opened
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    server = serve.serve(port=0, block=False)
    try:
        assert f"Margin Explorer: {server.url}" in capsys.readouterr().out
        assert opened == [server.url]
    finally:
        server.close()
    assert server.process.poll() is not None
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1].strip("/"))))


@pytest.mark.skipif(sys.platform == "win32", reason="looks for a process by POSIX means")
def test_a_class_opens_when_all_loops_are_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    program = (sys.executable, "-c", f"open({str(done)!r}, 'w')")
    monkeypatch.setattr(serve, "COMPILING", program)
    seen: list[bool] = []

    def starting(**given: object) -> NoReturn:
        seen.append(done.exists())
        raise serve.ServeError("not here")

    monkeypatch.setattr(serve, "start", starting)
    for size in (0, 2):
        with pytest.raises(serve.ServeError):
            serve.serve(class_size=size)
    assert seen == [False, True]


def test_server_ends_when_the_program_that_started_it_is_killed() -> None:
    program = "\n".join(
        [
            "import time",
            "from explorer.serve import server as serve",
            "server = serve.start(port=0, cells=('1',))",
            "print(server.process.pid, server.folder.name, flush=True)",
            "time.sleep(600)",
        ]
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        os.kill(int(pid), 0)
        parent.kill()
    try:
        assert within(PATIENCE_S, lambda: not lives(int(pid)))
    finally:
        shutil.rmtree(folder)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may be there to collect an orphan's status: a zombie has ended too.
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.skipif(sys.platform != "linux", reason="names of sockets are too long elsewhere")
def test_kernels_talk_over_sockets_but_in_a_jupyter_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")

    def transport(name: str) -> str:
        loaded = PyFileConfigLoader(name, path=str(serve.SETTINGS)).load_config()
        return str(loaded.KernelManager.transport)

    assert transport("voila.py") == "ipc"
    assert transport("jupyter_server_config.py") == "tcp"
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp" + 43 * "x")  # 112 characters in all
    loaded = PyFileConfigLoader("voila.py", path=str(serve.SETTINGS)).load_config()
    assert "transport" not in loaded.KernelManager


@pytest.fixture(scope="module")
def small_room() -> Iterator[serve.Server]:
    """A room of three, on all interfaces, with one place for each address but this machine's own.

    From there a proxy asks for many.
    """
    cells = (FOLDERS, *BUTTON)
    with serve.start(port=0, cells=cells, host="0.0.0.0", class_size=3, per_address=1) as running:
        yield running


def test_on_all_interfaces_any_address_and_the_machine_are_answered_and_folders_closed(
    small_room: serve.Server,
) -> None:
    files = f"{small_room.url}voila/static/voila.js"
    for name in ("10.1.2.3", "[2001:db8::1]:80", socket.gethostname()):
        assert ask(files, Host=name)[0] == 200
    assert ask(files, Host="evil.example")[0] == 403
    page = read_page(small_room)
    assert "folders: 0" in page
    assert status(f"{small_room.url}voila/api/shutdown/{kernel_of(page)}", "POST") == 204


def test_a_full_room_says_so_and_lets_in_later(small_room: serve.Server) -> None:
    url = small_room.url
    kernels = [kernel_of(read_page(small_room)) for _ in range(3)]
    with contextlib.ExitStack() as stack:
        for kernel in kernels:
            stack.enter_context(connected(small_room, kernel))
        for address in ("", "voila/render/membership.ipynb"):
            code, headers, words = ask(url + address)
            assert code == 503 and headers["Retry-After"]
            assert "http-equiv='refresh'" in words
            assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert status(f"{url}api/kernels/{kernels[0]}") == 200
        assert status(f"{url}voila/api/shutdown/{kernels[0]}", "POST") == 204
        kernels.append(kernel_of(read_page(small_room)))
        assert kernels[-1] not in kernels[:-1]
    for kernel in kernels[1:]:
        assert status(f"{url}voila/api/shutdown/{kernel}", "POST") == 204


def test_one_address_has_so_many_places(small_room: serve.Server) -> None:
    port = int(small_room.url.rsplit(":", 1)[1].strip("/"))
    other = f"http://{own_address()}:{port}/"
    with connected(small_room, kernel_of(read_page(small_room))):
        code, _, page = ask(other)
        assert code == 200
        with connected(small_room, kernel_of(page)):
            code, _, words = ask(other)
            assert code == 503 and "Your address" in words
            assert status(small_room.url) == 200


def own_address() -> str:
    """An address of this machine on its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # for documentation; nothing is sent
        except OSError:
            pytest.skip("this machine has no address but its own")
        return str(probe.getsockname()[0])


def test_a_kernel_that_no_page_met_ends_soon_and_one_whose_page_asks_stays(
    plain_server: serve.Server,
) -> None:
    left, asking, met = (kernel_of(read_page(plain_server)) for _ in range(3))
    kernels = f"{plain_server.url}api/kernels/"
    with connected(plain_server, met):

        def is_gone(after: float) -> bool:
            ends = time.monotonic() + after
            while time.monotonic() < ends:
                time.sleep(2)
                assert status(kernels + asking) == 200
            return status(kernels + left) == 404  # or it was heard of anew

        assert is_gone(14) or is_gone(28) or is_gone(56)  # 10, and the next look
        assert status(kernels + met) == 200
