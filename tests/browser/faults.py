"""Faults between a page and its kernel: a line that is held, and which process to kill."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import psutil

from explorer.serve import server as serve


class Wire:
    """A line to a port, at an address of its own. Held, it passes nothing, and breaks nothing.

    The offline mode of a browser leaves websockets open, as a real line that fails does not.
    """

    def __init__(self, port: int) -> None:
        """Listen, and pass on what comes."""
        self.target = port
        self._loop = asyncio.new_event_loop()
        self._sinks: list[asyncio.StreamWriter] = []
        self._free = asyncio.Event()
        self._free.set()
        # In a thread of its own: the driver of the browser has a loop in this one.
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._pass, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def _pass(self, page: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        await self._free.wait()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            answer.close()
            return
        await asyncio.gather(self._pump(page, back), self._pump(there, answer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._sinks.append(sink)
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(2**16):
                    await self._free.wait()
                    sink.write(data)
                    await sink.drain()
            await self._free.wait()  # an end is no more told than anything else
        finally:
            sink.close()

    async def _end(self) -> None:
        self._server.close()
        self._free.set()
        for sink in self._sinks:
            sink.transport.abort()  # its other half then reads an end
        passing = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*passing, return_exceptions=True)

    def hold(self) -> None:
        """Let nothing pass."""
        self._loop.call_soon_threadsafe(self._free.clear)

    def free(self) -> None:
        """Let everything pass, also what waited."""
        self._loop.call_soon_threadsafe(self._free.set)

    def close(self) -> None:
        """End the line."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextlib.contextmanager
def wire_to(server: serve.Server) -> Iterator[Wire]:
    """A line to a server."""
    wire = Wire(port_of(server))
    try:
        yield wire
    finally:
        wire.close()


def port_of(server: serve.Server) -> int:
    """The port that a server listens on."""
    return int(server.url.rstrip("/").rpartition(":")[2])


def kernel_of(server: serve.Server) -> psutil.Process:
    """The kernel of a server's only visitor: forked from the warm process, or started alone."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    warm = [child.pid for child in children if "explorer.serve.warm" in child.cmdline()]
    forked = [each for each in children  # the warm process may also compile, by its module's name
              if each.ppid() in warm and "explorer.serve.warm" in each.cmdline()]  # fmt: skip
    alone = [child for child in children if "ipykernel_launcher" in child.cmdline()]
    (kernel,) = forked or alone
    return kernel
