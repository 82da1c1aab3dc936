"""A hall of phones that tap: how soon a tap is on the projector, and how large the phone's page is.

    python benchmarks/bench_hall.py [--phones 300] [--seconds 30] [--cores 0,1]

One process is all phones: each holds a connection, as a browser does, joins within five seconds and
taps every two seconds, each at a moment of its own. A tap's time runs from before it is sent until
the projector's socket has told of it. The round is of a trained network, as large as the opening's.
One more phone is a page in Chromium, pressed by a real mouse: its time begins with the press.
The server, the phones and Chromium share the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import time
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bench_live import FLAGS, _found, quantile
from playwright.async_api import async_playwright
from tornado.websocket import WebSocketClientConnection, websocket_connect

from explorer import Run, TrainConfig, maximum_margin, preset
from explorer.research.game import hide
from explorer.research.hall import board
from explorer.research.pictures.axes import Axes
from explorer.serve import server as serve

EVERY_S, JOIN_S = 2.0, 5.0
NAME = "in Chromium"
CELLS = ("import ipywidgets", "ipywidgets.Button()")


@dataclass
class Seen:
    """What was sent, what came, and what was refused."""

    sent: dict[tuple[float, float], float] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    pressed: list[float] = field(default_factory=list)
    in_browser: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def board_of_a_run() -> dict[str, object]:
    """Return what phones see of the alternating circle's exact network."""
    data = preset("alternating-circle", n=20)
    made = hide(Run(data, TrainConfig()), maximum_margin(data.x, data.y).net)
    return board(made.challenge, Axes())


async def phone(url: str, code: str, seen: Seen, end: float) -> None:
    """Join, and tap until the end over one connection."""
    at = urlsplit(url)
    await asyncio.sleep(random.random() * JOIN_S)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    token, taps, version = secrets.token_hex(16), list[tuple[float, float]](), -1
    while time.perf_counter() < end:
        tap = (random.uniform(-1, 1), random.uniform(-1, 1))
        taps = [*taps[-19:], tap] if version > 0 else []  # it looks first
        body = json.dumps({"code": code, "token": token, "name": "", "taps": taps, "guess": "",
                           "seen": version}).encode()  # fmt: skip
        head = f"POST /hall/taps HTTP/1.1\r\nHost: {at.netloc}\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        begun = time.perf_counter()
        if taps:
            seen.sent[tap] = begun
        writer.write(head.encode() + body)
        said = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"(?i)content-length: (\d+)", said)
        answer = json.loads(await reader.readexactly(int(length[1])))
        seen.answers.append(time.perf_counter() - begun)
        if " 200 " not in said.splitlines()[0]:
            seen.refused.append(str(answer))
            seen.sent.pop(tap, None)
        version = answer.get("version", version)
        await asyncio.sleep(max(0.0, begun + EVERY_S - time.perf_counter()))
    writer.close()


async def projector(link: WebSocketClientConnection, seen: Seen) -> None:
    """Note when each tap is told of, for the first time."""
    while (message := await link.read_message()) is not None:
        now = time.perf_counter()
        for taps, _, name in json.loads(message).get("phones", {}).values():
            if name == NAME and len(taps) > len(seen.in_browser):
                seen.in_browser.append(now - seen.pressed[len(seen.in_browser)])
            begun = seen.sent.pop(tuple(taps[-1]), None) if taps else None
            if begun is not None:
                seen.delays.append(now - begun)


async def browser_phone(url: str, code: str, seen: Seen, end: float) -> None:
    """Tap on the page itself, every two seconds and up to twenty times."""
    async with async_playwright() as chromium:
        browser = await chromium.chromium.launch(
            executable_path=_found(os.environ.get("CHROMIUM", "chromium")), args=list(FLAGS)
        )
        page = await browser.new_page(viewport={"width": 390, "height": 844})
        await page.goto(f"{url}hall#{code}")
        plane = page.locator("#plane")
        await page.get_by_label("A name").fill(NAME)
        await page.get_by_label("A name").press("Tab")
        while time.perf_counter() < end and len(seen.pressed) < 20:
            await asyncio.sleep(EVERY_S)
            box = await plane.bounding_box()
            at = [box[a] + random.random() * box[b] for a, b in (("x", "width"), ("y", "height"))]
            seen.pressed.append(time.perf_counter())
            await page.mouse.click(*at)
        await browser.close()


async def play(server: serve.Server, phones: int, seconds: float) -> Seen:
    """Begin a round, and let all phones tap."""
    with urllib.request.urlopen(server.url) as answer:
        kernel = re.search(r'"kernelId": ?"([\w-]+)"', answer.read().decode())[1]
    address = f"{server.url.replace('http', 'ws', 1)}hall/projector?kernel={kernel}"
    # The page's own socket: without one its kernel would end.
    channels = f"{server.url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
    await websocket_connect(channels, subprotocols=["v1.kernel.websocket.jupyter.org"])
    link = await websocket_connect(address)
    await link.write_message(json.dumps({"round": board_of_a_run()}))
    code = json.loads(await link.read_message())["code"]
    seen = Seen()
    watching = asyncio.create_task(projector(link, seen))
    end = time.perf_counter() + seconds
    await asyncio.gather(
        browser_phone(server.url, code, seen, end),
        *(phone(server.url, code, seen, end) for _ in range(phones)),
    )
    await asyncio.sleep(1)
    watching.cancel()
    return seen


def main() -> None:
    """Serve, let all tap, and print."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--phones", type=int, default=300)
    words.add_argument("--seconds", type=float, default=30.0)
    words.add_argument("--cores", default="", help="of server and phones together, such as 0,1")
    asked = words.parse_args()
    if asked.cores:
        os.sched_setaffinity(0, {int(core) for core in asked.cores.split(",")})
    load = os.getloadavg()[0]
    with serve.start(port=0, cells=CELLS) as server:
        with urllib.request.urlopen(f"{server.url}hall") as answer:
            page = len(answer.read())
        seen = asyncio.run(play(server, asked.phones, asked.seconds))
    print(f"{len(os.sched_getaffinity(0))} cores, load before {load:.1f}")
    print(f"phone's page {page:,} bytes, the round {len(json.dumps(board_of_a_run())):,} bytes")
    print(f"{asked.phones} phones, {len(seen.delays):,} taps seen, {len(seen.sent)} not seen, "
          f"{len(seen.refused)} refused")  # fmt: skip
    named = {"tap to projector": seen.delays, "from a press in Chromium": seen.in_browser,
             "answer to a phone": seen.answers}  # fmt: skip
    for name, times in named.items():
        name = f"{name}, {len(times):,} times"
        median, late = quantile(times, 0.5), quantile(times, 0.95)
        print(f"{name}: median {median:.3f} s, 95% within {late:.3f} s, most {max(times):.3f} s")


if __name__ == "__main__":
    main()
