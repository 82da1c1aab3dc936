"""One visitor cannot stop the server for another, nor make it name what is not theirs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from explorer.serve import server as serve
from explorer.serve.server import Server
from tests.serve import visits
from tests.serve.conftest import FOLDERS, IMAGE
from tests.serve.visits import connected, farewell, frame, kernel_of, packed, read_page

MOST_GROWTH = 100e6  # bytes; arbitrary, the stock server grew by 1.7 GB in 40 s
SOCKETS = 33  # of each kind; arbitrary: what one of them stops, a hundred stop for certain
STATES = {"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}}
ASK = {"comm_id": "c", "data": {"method": "request_states"}}
GOOD = frame()
HEADER = json.dumps({"msg_type": "kernel_info_request", "msg_id": "a"}).encode()


def older(kind: str, content: object) -> str:
    """A message in the older layout."""
    header = {"msg_id": f"{kind}-{next(visits.NUMBERS)}", "msg_type": kind, "session": "s",
              "username": "", "version": "5.3"}  # fmt: skip
    parts = {"header": header, "parent_header": {}, "metadata": {"version": "1.0.0"}}
    return json.dumps({**parts, "content": content, "channel": "shell", "buffers": []})


def number(n: int) -> bytes:
    return n.to_bytes(8, "little")


def with_offset(index: int, value: int) -> bytes:
    return GOOD[: 8 * (index + 1)] + number(value) + GOOD[8 * (index + 2) :]


BAD: dict[str, str | bytes] = {
    "text": json.dumps({"header": {"msg_type": "kernel_info_request"}}),
    "nothing": b"",
    "less than a number": b"\1\0\0",
    "no offsets": number(0) * 9,
    "a count of 2^63": number(2**63) + bytes(64),
    "a count beyond the message": number(9) + GOOD[8:60],
    "a million offsets": number(10**6) + bytes(8 * 10**6),
    "the older layout": struct.pack("!II", 1, 8) + b'{"channel": "shell"}',
    "an offset of 2^64 - 1": with_offset(5, 2**64 - 1),
    "offsets out of order": with_offset(2, 8),
    "an offset into the offsets": with_offset(0, 0),
    "an end beyond the message": with_offset(5, len(GOOD) + 1),
    "no JSON": packed([b"shell", b"{", b"{}", b"{}", b"{}"]),
    "no text": packed([b"shell", b'{"a": "\xff"}', b"{}", b"{}", b"{}"]),
    "a list": packed([b"shell", b"[]", b"{}", b"{}", b"{}"]),
    "a content that is no object": packed([b"shell", HEADER, b"{}", b"{}", b"7"]),
    "no name": packed([b"shell", b'{"msg_type": "a"}', b"{}", b"{}", b"{}"]),
    "no kind": packed([b"shell", b"{}", b"{}", b"{}", b"{}"]),
    "a kind that is no word": packed([b"shell", b'{"msg_type": []}', b"{}", b"{}", b"{}"]),
    "brackets without end": packed([b"shell", b"[" * 100_000, b"{}", b"{}", b"{}"]),
    "a number of many digits": packed([b"shell", b'{"a": ' + b"9" * 9999 + b"}"] + [b"{}"] * 3),
    "a header too long": packed([b"shell", HEADER[:-1] + b" " * 2**20 + b"}"] + [b"{}"] * 3),
    "a channel that is only heard": frame(channel="iopub"),
    "a channel that is not": frame(channel="x" * 1000),
}


@pytest.fixture(scope="module")
def in_jupyter() -> Iterator[Server]:
    """Voila inside a Jupyter server that was shown our settings; the page lies in its folder."""
    folder = tempfile.TemporaryDirectory(prefix="jupyter-", ignore_cleanup_errors=True)
    home = Path(folder.name)
    (home / "work").mkdir()
    serve.write_pages(home / "work", (FOLDERS, *IMAGE))
    own = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "RUNTIME")}
    own |= dict.fromkeys(("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"), str(serve.SETTINGS))
    port = serve.free_port("127.0.0.1", 0)
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--log-level=ERROR"),
        *("--IdentityProvider.token=", "--ServerApp.password="),
        f"--ServerApp.root_dir={home / 'work'}",
    ]
    process = subprocess.Popen(command, env=os.environ | own, start_new_session=True)
    with Server(f"http://127.0.0.1:{port}/", process, folder) as server:
        serve.wait_until_listening(process, "127.0.0.1", port)
        yield server


HOSTS = {"plain_server": "", "in_jupyter": "voila/render/explorer.ipynb"}


@dataclass(frozen=True)
class Host:
    """A server, where its page is, what a visitor was answered, and the kernel of that visit."""

    server: Server
    page: str
    headers: dict[str, str]
    text: str
    kernel: str


@contextlib.contextmanager
def visited(server: Server, page: str) -> Iterator[Host]:
    """One visit for every test that only reads: its socket stays, and so does its kernel."""
    code, headers, text = visits.ask(server.url + page)
    assert code == 200, text
    kernel = kernel_of(text)
    with connected(server, kernel):
        yield Host(server, page, headers, text, kernel)


@pytest.fixture(scope="module")
def visit(plain_server: Server) -> Iterator[Host]:
    """A visit of the stand-alone server."""
    with visited(plain_server, HOSTS["plain_server"]) as found:
        yield found


@pytest.fixture(scope="module")
def visit_in_jupyter(in_jupyter: Server) -> Iterator[Host]:
    """A visit of the Jupyter server."""
    with visited(in_jupyter, HOSTS["in_jupyter"]) as found:
        yield found


@pytest.fixture(params=["visit", "visit_in_jupyter"])
def host(request: pytest.FixtureRequest) -> Host:
    """A visit of either server."""
    return request.getfixturevalue(request.param)


def paths(server: Server) -> list[str]:
    """Folders of this machine that are nobody's business."""
    return [server.folder.name, sys.prefix, str(Path(serve.__file__).parent), str(Path.home())]


def memory(server: Server) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


# --- sockets ----------------------------------------------------------------------------------
def test_badly_formed_sockets_stop_nobody_else(host: Host) -> None:
    before = memory(host.server)
    with contextlib.ExitStack() as stack:
        for protocols in ((), ("other",), (visits.PROTOCOL,)):
            links = [
                stack.enter_context(connected(host.server, host.kernel, protocols))
                for _ in range(SOCKETS)
            ]
            for link in links:
                # A closed socket may refuse to take more.
                with contextlib.suppress(OSError):
                    if visits.PROTOCOL in protocols:
                        link.send_binary(BAD["a count of 2^63"])
                    else:  # as a client of the older layout asks for the picture
                        for kind, content in (("comm_open", STATES), ("comm_msg", ASK)):
                            link.send(older(kind, content))
            # The server answers, and so does a kernel behind it.
            assert visits.answers(host.server, host.kernel), protocols
        assert visits.is_served(host.server, host.page)
    assert memory(host.server) - before < MOST_GROWTH


@pytest.mark.parametrize("protocols", [(), ("other",)], ids=str)
def test_a_socket_without_the_protocol_is_told_so(host: Host, protocols: tuple[str, ...]) -> None:
    with connected(host.server, host.kernel, protocols) as link:
        code, words = farewell(link)
        assert code == 1002
        assert visits.PROTOCOL in words and "proxy" in words


def test_a_badly_formed_message_closes_its_socket_alone(visit: Host) -> None:
    with connected(visit.server, visit.kernel) as other:
        for name, message in BAD.items():
            with connected(visit.server, visit.kernel) as link:
                (link.send if isinstance(message, str) else link.send_binary)(message)
                code, words = farewell(link)
                assert (code, words.endswith(".")) == (1007, True), name
        other.send_binary(frame())
        while b"kernel_info_reply" not in other.recv():
            pass


def test_buffers_and_a_long_content_pass(visit: Host) -> None:
    with connected(visit.server, visit.kernel) as link:
        content = {"comm_id": "none", "data": {"words": "x" * 2**21}}
        link.send_binary(frame("comm_msg", content=content, buffers=[b"", bytes(10)]))
        link.send_binary(frame())
        while b"kernel_info_reply" not in link.recv():
            pass


def test_a_kernel_sends_its_page_no_traceback(visit: Host) -> None:
    seen = b""
    with connected(visit.server, visit.kernel) as link:
        wrong = {"comm_id": "c", "target_name": "jupyter.widget", "data": {"state": 7}}
        link.send_binary(frame("comm_open", content=wrong))
        link.send_binary(frame())
        while b"kernel_info_reply" not in seen:
            seen += link.recv()
        link.send_binary(frame())
        while seen.count(b"kernel_info_reply") < 2:
            seen += link.recv()
    assert not [path for path in paths(visit.server) if path.encode() in seen]
    assert b"Traceback" not in seen


# --- names, headers and pages -----------------------------------------------------------------
@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "10.1.2.3", "localhost.evil"])
def test_another_host_name_is_refused_for_every_address(plain_server: Server, name: str) -> None:
    for address in ("", "voila/static/voila.js", "api/kernels/a-b-c-d-e", "nothing"):
        code, _, words = visits.ask(plain_server.url + address, Host=name)
        assert code == 403 and "--allow-host" in words
    address = f"{plain_server.url}voila/api/shutdown/a-b-c-d-e"
    code, _, words = visits.ask(address, "POST", Host=name)
    assert code == 403 and "--allow-host" in words


@pytest.mark.parametrize("name", ["127.0.0.1", "LOCALHOST:1", "[::1]:2", "127.1.2.3"])
def test_names_of_this_machine_are_answered(plain_server: Server, name: str) -> None:
    assert visits.ask(f"{plain_server.url}voila/static/voila.js", Host=name)[0] == 200


def test_named_hosts_are_answered_folders_closed_and_a_failure_shows_no_path() -> None:
    named = ("class.example.org", "10.1.2.3")
    fails = "open('/nowhere/of/this/machine')"
    with serve.start(port=0, cells=(FOLDERS, fails), allow_hosts=named) as server:
        files = f"{server.url}voila/static/voila.js"
        assert {visits.ask(files, Host=n)[0] for n in (*named, "Class.Example.ORG:80")} == {200}
        assert visits.ask(files, Host="other.example.org")[0] == 403
        page = read_page(server)
        assert "folders: 0" in page
        a_failure_shows_no_path(server, page)


def test_folders_are_open_to_the_machines_own_user(visit: Host) -> None:
    assert "folders: 1" in visit.text


@pytest.mark.parametrize("wrong", ["http://a.example", "a.example:80", "a,b", "", "*"])
def test_a_host_that_is_no_name_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="host"):
        serve.start(allow_hosts=(wrong,))


def test_a_page_says_what_may_run_on_it(host: Host) -> None:
    headers = host.headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert "unsafe-eval" not in str(policy)
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
    assert policy["script-src"].startswith("'self'") and policy["frame-ancestors"] == "'self'"
    assert "http" not in str(policy) and "*" not in str(policy)
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("address", ["voila/static/voila.js", "voila/files/a.png", "nothing"])
def test_files_and_refusals_have_the_headers_too(plain_server: Server, address: str) -> None:
    _, headers, _ = visits.ask(plain_server.url + address)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


# Each page costs a kernel: every name that a query may have, and its values by twos and threes.
QUERIES = (
    "template=reveal&voila-template=reveal&voila-theme=reveal&classic-tree=true",
    "template=nothing&theme=nothing",
    "template=../../lab&theme=%22%3E%3Cscript%20src=//evil.example%3E",
    "template=lab&template=classic&theme=dark",
)


def test_no_query_names_another_host_and_one_chooses_the_theme(host: Host) -> None:
    for query in QUERIES:
        code, _, text = visits.ask(f"{host.server.url}{host.page}?{query}")
        found = set(re.findall(r"(?:https?:|wss?:|[\"'(=]\s*)//([\w.-]+)", text))
        assert found <= {"www.w3.org"}, query  # the name space of drawings, which nobody asks
        assert code == 200 and "Margin Explorer" in text and "evil" not in text, query
        dark = "theme=dark" in query
        assert dark or "theme-light" in text, query
        assert ("theme-dark" in text) == dark, query


WRONG = ("?theme=%ff", "nothing", "voila/templates/x", "voila/templates/lab/static/../../x",
         "login", "voila/labextensions/x", "voila/api/themes/x", "voila/static/x",
         "voila/files/../x", "logout", "%00", "voila/static/a%00b", "voila/render/%00.ipynb",
          "voila/query/a-b-c-d-e", "api/kernels/a-b-c-d-e")  # fmt: skip


@pytest.mark.parametrize("address", WRONG)
def test_a_wrong_address_ends_in_a_plain_sentence(plain_server: Server, address: str) -> None:
    code, _, words = visits.ask(plain_server.url + address)
    assert 400 <= code < 500
    assert words and "Traceback" not in words and "//" not in words
    assert not [path for path in paths(plain_server) if path in words]


def a_failure_shows_no_path(server: Server, page: str) -> None:
    """The notebook is gone, then its cell fails: neither the folder nor a traceback is shown."""
    assert "nowhere" not in page and "Traceback" not in page and serve.__file__ not in page
    assert "log says" in page
    shutil.rmtree(server.folder.name)
    code, _, words = visits.ask(server.url)
    assert code >= 400
    assert server.folder.name not in words and "Traceback" not in words
