"""A visitor without a browser: asks for pages, and speaks to a kernel over its page's socket."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import websocket

from explorer.serve import server as serve

PROTOCOL = "v1.kernel.websocket.jupyter.org"
PATIENCE_S = 60.0
NUMBERS = itertools.count()
CLOSE = 8  # the opcode of a farewell


def settings_module(name: str) -> Any:
    """A module of the settings folder, loaded by its path as voila.py does it."""
    key = f"margin_explorer_{name}"
    if key not in sys.modules:
        spec = spec_from_file_location(key, serve.SETTINGS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[key] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


def ask(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text; a refusal is an answer too."""
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return int(answer.status), dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def status(url: str, method: str = "GET") -> int:
    return ask(url, method)[0]


def read_page(server: serve.Server, query: str = "") -> str:
    code, _, page = ask(server.url + query)
    assert code == 200, page
    return page


def kernel_of(page: str) -> str:
    found = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found, page
    return str(json.loads(found[1])["kernelId"])


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return holds()


@contextlib.contextmanager
def connected(
    server: serve.Server, kernel: str, protocols: Sequence[str] = (PROTOCOL,)
) -> Iterator[websocket.WebSocket]:
    """A socket of a page."""
    address = f"{server.url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
    # As a header: the client would refuse an answer that chooses none of them.
    offered = [f"Sec-WebSocket-Protocol: {', '.join(protocols)}"] if protocols else []
    link = websocket.create_connection(address, timeout=PATIENCE_S, header=offered)
    try:
        yield link
    finally:
        link.shutdown()


def frame(kind: str = "kernel_info_request", channel: str = "shell", content: object = None,
          buffers: Sequence[bytes] = (), metadata: object = None) -> bytes:  # fmt: skip
    """A message as the protocol has it."""
    # A kernel takes no message twice.
    header = {"msg_id": str(next(NUMBERS)), "msg_type": kind, "session": "s", "username": "",
              "version": "5.3", "date": "2020-01-01T00:00:00Z"}  # fmt: skip
    parts = [json.dumps(part).encode() for part in (header, {}, metadata or {}, content or {})]
    return packed([channel.encode(), *parts, *buffers])


def packed(parts: Sequence[bytes]) -> bytes:
    """Offsets, then the parts."""
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return b"".join([*(n.to_bytes(8, "little") for n in (len(offsets), *offsets)), *parts])


def farewell(link: websocket.WebSocket) -> tuple[int, str]:
    """The code and the sentence with which the server closes; what it says before is skipped."""
    while True:
        opcode, data = link.recv_data()
        if opcode == CLOSE:
            return int.from_bytes(data[:2], "big"), data[2:].decode()


def is_served(server: serve.Server, page: str = "") -> bool:
    """Whether a new visitor gets a page, and an answer of the kernel behind it."""
    return answers(server, kernel_of(read_page(server, page)))


def answers(server: serve.Server, kernel: str) -> bool:
    """Whether a kernel answers over a new socket of its page."""
    with connected(server, kernel) as link:
        link.send_binary(frame())
        while b"kernel_info_reply" not in link.recv():
            pass
    return True
