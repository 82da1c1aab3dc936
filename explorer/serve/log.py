"""A log that cannot fill a disk: what the server and its kernels say, up to so much an hour."""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress

MOST = 10**6  # bytes in an hour; arbitrary
HOUR_S = 3600.0
CHUNK = 65536
FULL = b"\nThe log is full for this hour: what follows is left out until the next.\n"
END = b"\0the server ends\0"  # kernels may hold the pipe open for longer, so it has no end


def limit() -> None:
    """Pass on what is written to standard error from here on, kernels' words too."""
    out = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    ended = threading.Event()
    threading.Thread(target=_pass_on, args=(reading, out, ended), daemon=True).start()
    atexit.register(lambda: os.write(2, END) and ended.wait(1.0))


def _pass_on(reading: int, out: int, ended: threading.Event) -> None:
    """Copy for ever; one sentence says where something is left out."""
    left, until = MOST, 0.0
    while said := os.read(reading, CHUNK):
        said, end, _ = said.partition(END)
        if time.monotonic() > until:
            left, until = MOST, time.monotonic() + HOUR_S
        if left > 0:
            with suppress(OSError):  # nobody listens any more
                os.write(out, said[:left] + (FULL if len(said) > left else b""))
            left -= len(said)
        if end:
            ended.set()
