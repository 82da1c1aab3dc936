"""The story at the address /story: a page that plays without a kernel, made once for all visitors.

A process of its own makes it, since here is no torch. voila.py loads this file by its path.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tornado.web import HTTPError, RequestHandler

MAKER = ("-m", "explorer", "export", "story", "--out")
MAKER_S = 120  # arbitrary: it loads torch first


class Story(RequestHandler):
    """The page. Its own policy stands in it; ours, of every page, holds as well."""

    made: asyncio.Future[bytes] | None = None  # of all visitors

    async def get(self) -> None:
        """Answer with the page; the first visitor waits until it is made."""
        if Story.made is None or (Story.made.done() and Story.made.exception() is not None):
            Story.made = asyncio.ensure_future(_page())
        page = await asyncio.shield(Story.made)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-cache")
        self.finish(page)


async def _page() -> bytes:
    """Return the page, made by the command that exports it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "story.html"
        quiet = asyncio.subprocess.DEVNULL
        maker = await asyncio.create_subprocess_exec(
            sys.executable, *MAKER, str(path), stdin=quiet, stdout=quiet
        )
        try:
            await asyncio.wait_for(maker.wait(), MAKER_S)
        except TimeoutError:
            maker.kill()
        if not path.is_file():
            raise HTTPError(500)
        return path.read_bytes()
