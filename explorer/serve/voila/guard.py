"""What stands between a visitor and the server: sockets, host names, headers and error pages.

voila.py loads this file by its path: an import from the package would import torch.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Iterable
from html import escape
from ipaddress import ip_address
from itertools import pairwise
from socket import gethostname
from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado.iostream import StreamBufferFullError
from tornado.routing import Matcher
from tornado.web import HTTPError, OutputTransform, RequestHandler
from tornado.websocket import WebSocketClosedError
from voila.static_file_handler import TemplateStaticFileHandler
from voila.tornado.handler import TornadoVoilaHandler
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler
from voila.tornado.treehandler import TornadoVoilaTreeHandler

from explorer.serve import EVERYWHERE

# --- sockets ----------------------------------------------------------------------------------
PROTOCOL = "v1.kernel.websocket.jupyter.org"
CHANNELS = (b"shell", b"control", b"stdin")  # iopub is for listening alone
PARTS = ("header", "parent header", "metadata", "content")
LEAST_OFFSETS = 2 + len(PARTS)  # of the channel, of each part, and the end
MOST_BUFFERS = 1000  # arbitrary; a widget sends a few
MOST_READ = 10_000  # bytes of JSON read here; of what is longer only a content may be, unread
OF_A_NOTEBOOK = 2**20  # likewise in a Jupyter server, whose notebooks tell of their cells
PROTOCOL_ERROR, UNREADABLE, TOO_MUCH = 1002, 1007, 1008  # close codes of RFC 6455
# As a kernel writes it: in a value, quotation marks would be escaped.
UNREAD = tuple(
    b'"msg_type":%s"%s"' % (space, kind)
    for kind in (b"comm_msg", b"status")
    for space in (b" ", b"")
)
# A reason has 123 bytes at most.
NO_PROTOCOL = f"Only the subprotocol {PROTOCOL} is spoken here. Does a proxy remove its header?"
BUSY = "The kernel works, and too much waits for it already. Wait, then reload the page."
MANY = "This page has as many connections as it may. Close some of them."


class Mistake(ValueError):
    """What is wrong with a frame of a visitor, as a sentence."""


def name_of(message: str | bytes, most: int = MOST_READ) -> str:
    """Return the name that a visitor gave a message; of its JSON `most` bytes a part are read.

    The layout: a count of offsets and the offsets, numbers of 8 bytes with the lowest first; then
    channel, header, parent header, metadata, content and buffers, each from one offset to the next.

    Raises:
        Mistake: it is not so.
    """
    if not isinstance(message, bytes):
        raise Mistake("A message must be binary.")
    count = int.from_bytes(message[:8], "little")
    if not LEAST_OFFSETS <= count <= min(LEAST_OFFSETS + MOST_BUFFERS, len(message) // 8 - 1):
        raise Mistake(
            f"The number of offsets must be {LEAST_OFFSETS} or more, and fit the message."
        )
    offsets = struct.unpack_from(f"<{count}Q", message, 8)
    ends = (8 * (count + 1), *offsets, len(message))
    if any(start > end for start, end in pairwise(ends)):
        raise Mistake("The offsets must rise and stay within the message.")
    channel, *parts = (message[a:b] for a, b in pairwise(offsets[:LEAST_OFFSETS]))
    if channel not in CHANNELS:
        raise Mistake("The channel must be shell, control or stdin.")
    found = {}
    for name, part in zip(PARTS, parts, strict=True):
        if name == "content" and len(part) > most:
            continue  # the visitor's own kernel reads it
        found[name] = _object(part) if len(part) <= most else None
        if found[name] is None:
            raise Mistake(f"The {name} is not as the protocol has it.")
    kind, name = (found["header"].get(key) for key in ("msg_type", "msg_id"))
    if not isinstance(kind, str) or not isinstance(name, str):
        raise Mistake("The header is not as the protocol has it.")
    return name


def _object(part: bytes) -> dict[str, Any] | None:
    """Return the JSON object, or None where the bytes hold no object."""
    try:
        found = json.loads(part)
    except (ValueError, RecursionError):  # also of bytes that are no text
        return None
    return found if isinstance(found, dict) else None


class CheckedConnection(ZMQChannelsWebsocketConnection):
    """A page's socket that reads only well-formed messages, and closes on any other.

    Voila and Jupyter read the first bytes of a frame as a count, and loop that often. They do the
    same with the older layout, which clients without the subprotocol send.
    """

    kernel_ws_protocol = PROTOCOL  # of the class: no setting brings the older layout back
    closed_for = ""

    async def prepare(self) -> None:
        """Get the kernel ready, unless the subprotocol is missing."""
        offered = self.websocket_handler.request.headers.get("Sec-WebSocket-Protocol", "")
        if PROTOCOL not in (name.strip() for name in offered.split(",")):
            self.closed_for = NO_PROTOCOL
            return
        await super().prepare()

    async def connect(self) -> None:
        """Connect to the kernel, or close with a sentence."""
        if self.closed_for:
            self.websocket_handler.close(PROTOCOL_ERROR, self.closed_for)
            return
        if self.traffic is not None and not self.traffic.comes(self):
            self._refuse(TOO_MUCH, MANY)
            return
        # Each frame at once: with Nagle's algorithm a live view stays under 15 frames/s.
        self.websocket_handler.set_nodelay(True)
        connected = super().connect()
        if connected is not None:
            await connected

    def disconnect(self) -> None:
        """Leave the kernel, which a refused socket never met."""
        if self.traffic is not None:
            self.traffic.goes(self)
        if self.closed_for not in (NO_PROTOCOL, MANY):
            super().disconnect()

    @property
    def traffic(self) -> Any:
        """Return what is on the way to the kernel; nothing is counted in a Jupyter server."""
        return getattr(self.kernel_manager, "traffic", None)

    def _refuse(self, code: int, why: str) -> None:
        """Close with a sentence; what comes meanwhile is not read."""
        self.closed_for = why
        if self.traffic is not None:
            self.traffic.goes(self)
        self.websocket_handler.close(code, why)

    def handle_incoming_message(self, incoming_msg: str | bytes) -> None:
        """Pass a message to the kernel; a bad one closes the socket."""
        if self.closed_for:
            return
        try:
            most = OF_A_NOTEBOOK if self.traffic is None else MOST_READ
            name = name_of(incoming_msg, most)
        except Mistake as mistake:
            self._refuse(UNREADABLE, str(mistake))
            return
        if self.traffic is None or self.traffic.takes(name, len(incoming_msg)):
            super().handle_incoming_message(incoming_msg)
        else:
            self._refuse(TOO_MUCH, BUSY)

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Pass a message to the page, except prints of the kernel that the visitor may not see.

        What fails behind a widget is printed with its traceback, and so with paths of this machine.
        What widgets say, and that a kernel works or rests, is most of all: it passes unread.
        """
        _, parts = self.session.feed_identities(outgoing_msg)
        header = bytes(parts[1])  # after the signature
        if any(mark in header for mark in UNREAD) and not isinstance(stream, str):
            self._on_zmq_reply(stream, parts[1:])
            return
        if not self.multi_kernel_manager.allow_tracebacks:
            if self.session.unpack(header).get("msg_type") == "stream":
                return
        super().handle_outgoing_message(stream, outgoing_msg)


class PageSocket(VoilaKernelWebsocketHandler):
    """A page's end of it: reads no faster than is fair, and keeps little for who does not read."""

    def get_websocket_protocol(self) -> Any:
        """Leave the pings to Jupyter, whose numbers are in ms; tornado takes them for seconds."""
        protocol = super().get_websocket_protocol()
        if protocol is not None:
            protocol.params.ping_interval = protocol.params.ping_timeout = None
        return protocol

    def on_message(self, ws_message: str | bytes) -> Awaitable[None] | None:
        """Pass it on; the next one is read after a rest, where they come too fast."""
        traffic = self.connection.traffic
        super().on_message(ws_message)
        rest = traffic.rest(len(ws_message)) if traffic is not None else 0.0
        return asyncio.sleep(rest) if rest > 0 else None

    def write_message(self, message: Any, binary: bool = False) -> Any:
        """Send; who has gone is passed, and who does not read is left."""
        try:
            sent = super().write_message(message, binary)
        except WebSocketClosedError:
            return None
        except StreamBufferFullError:
            self.ws_connection.stream.close()
            return None
        if sent is not None:
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())
        return sent


# --- host names -------------------------------------------------------------------------------


class OtherHost(Matcher):
    """Matches a request for a name that is not ours.

    A foreign page can point its own name at our address ("DNS rebinding"), and could then read our
    pages as its own. With an address this is not possible: if we listen on all, any is ours.
    """

    def __init__(self, ip: str, named: Iterable[str]) -> None:
        """Take the interface listened on, and the further names that the operator allows."""
        self.everywhere = ip in EVERYWHERE
        own = gethostname() if self.everywhere else ip
        names = (own, "localhost", *named)
        self.names = {name.strip().lower().strip("[]") for name in names} - {""}

    def match(self, request: Any) -> dict[str, Any] | None:
        """Return None for a name of ours, so that the next rule is asked."""
        name = request.host_name.strip("[]")
        if name in self.names:
            return None
        try:
            address = ip_address(name)
        except ValueError:
            return {}
        return None if self.everywhere or address.is_loopback else {}


class NoFile(Matcher):
    """Matches a path that no file can have; those who look for one fail at it."""

    def match(self, request: Any) -> dict[str, Any] | None:
        """Return None for any other, so that the next rule is asked."""
        return {} if "%00" in request.path else None


class WrongHost(RequestHandler):
    """Refuses a request for another host, whatever its method."""

    def prepare(self) -> None:
        """Answer with who can change it."""
        self.set_status(403)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page_of("This server does not answer to the host name of your request. "
                            "Whoever runs it can allow a name: margin-explorer serve "
                            "--allow-host NAME."))  # fmt: skip


# --- headers and pages ------------------------------------------------------------------------
POLICY = "; ".join(
    [
        "default-src 'none'",
        # Inline: Voila writes the scripts of its page, with the kernel's name, into the page.
        # blob: anywidget imports each widget's module from one.
        "script-src 'self' 'unsafe-inline' blob:",
        # Inline: widgets write their styles into the page, as attributes and as elements.
        "style-src 'self' 'unsafe-inline'",
        # data: the page's icon; blob: ipywidgets shows each picture from one.
        "img-src 'self' data: blob:",
        "font-src 'self'",
        # The same host by ws: or wss: too, as 'self' covers both.
        "connect-src 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
WORDS = {
    400: "The server could not read this address.",
    403: "This address is not served.",
    404: "There is nothing at this address.",
}
FAILED = "The server failed at this page. Its log says why; reloading starts afresh."
FULL = "The room is full. {} This page tries again every {} seconds by itself: leave it open."
AGAIN_S = 5  # arbitrary
THEMES = ("light", "dark", "JupyterLab Light", "JupyterLab Dark")


class Headers(OutputTransform):
    """Adds the missing headers to every response, also to files and refusals."""

    def transform_first_chunk(
        self, status_code: int, headers: Any, chunk: bytes, finishing: bool
    ) -> tuple[int, Any, bytes]:
        """Add them."""
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        return status_code, headers, chunk


def page_of(sentence: str, again_s: int = 0) -> str:
    """Return a page of one sentence, in the browser's own colours, asked again by itself or not."""
    # By a script: a refresh of an address with a link behind "#" only scrolls, and asks nobody.
    again = (
        f"<script>setTimeout(() => location.reload(), {1000 * again_s})</script>"
        f"<noscript><meta http-equiv='refresh' content='{again_s}'></noscript>"
        if again_s
        else ""
    )
    return (
        f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'>{again}"
        "<title>Margin Explorer</title>"
        "<style>:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }</style>"
        f"<p role='alert'>{escape(sentence)}</p></html>"
    )


def say_plainly(handler: Any, status_code: int, **_: Any) -> None:
    """An error page: the stock one names what failed, and asks another host for its fonts."""
    handler.set_header("Content-Type", "text/html; charset=utf-8")
    handler.finish(page_of(WORDS.get(status_code, FAILED)))


class Nothing(RequestHandler):
    """There is nothing, whatever the method."""

    def prepare(self) -> None:
        """Say so."""
        raise HTTPError(404)

    write_error = say_plainly


class _Guarded:
    """A page of Voila: no template but ours, no theme but two, our headers, plain errors."""

    async def prepare(self, **options: Any) -> None:
        """Forget what a query may not choose."""
        asked = self.request.arguments
        for name in ("template", "classic-tree"):
            asked.pop(name, None)
        if self.get_argument("theme", "") not in THEMES:
            asked.pop("theme", None)
        await super().prepare(**options)

    def set_default_headers(self) -> None:
        """Ours over the stock ones."""
        super().set_default_headers()
        for name, value in HEADERS.items():
            self.set_header(name, value)

    write_error = say_plainly


def _asked_by_another_page(headers: Any) -> bool:
    """Return whether a foreign page asks, as a picture or in a frame: each would cost a kernel.

    A link that somebody follows is no such thing. A browser says which it is.
    """
    followed = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
    foreign = headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
    return foreign and followed != ("navigate", "document")


class GuardedPage(_Guarded, TornadoVoilaHandler):
    """A notebook as a page, while there is room for another kernel."""

    async def get(self, path: str | None = None) -> None:
        """Answer with the page, or with one that tries again by itself."""
        room = self.kernel_manager
        if _asked_by_another_page(self.request.headers):
            self.set_status(403)
            self.finish(page_of("Another page asked for this one. Open its address yourself."))
            return
        if not hasattr(room, "full"):  # a Jupyter server's
            answer = super().get(path)  # none, where it sent the visitor to log in
            if answer is not None:
                await answer
            return
        address = room.address_of(self.request)
        why = room.full(address)
        if not why:
            with room.visit(address):
                await super().get(path)
            return
        self.set_status(503)
        self.set_header("Retry-After", str(AGAIN_S))
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page_of(FULL.format(why, AGAIN_S), AGAIN_S))


class GuardedTree(_Guarded, TornadoVoilaTreeHandler):
    """The list of notebooks, in a Jupyter server alone."""


class TemplateFiles(TemplateStaticFileHandler):
    """Files of a template; the stock handler fails at an address without a file's name."""

    async def get(self, path: str, include_body: bool = True) -> None:
        """Answer, or say that there is nothing."""
        try:
            await super().get(path, include_body)
        except (AssertionError, ValueError, UnboundLocalError) as error:
            raise HTTPError(404) from error
