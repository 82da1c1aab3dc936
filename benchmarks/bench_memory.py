"""Memory that a visitor takes on the server: the page's kernel, opened, and after play.

    python benchmarks/bench_memory.py [--visitors 3] [--seconds 60] [--plain] [--training]

Chromium opens the page for each visitor, with the alternating circle of 20 points; then every page
plays, attacks, compares attacks and drops balls on the landscape. Last, one visitor of the page on
real images trains and attacks there. Kernels are forked from a warm process, as the server does
it; --plain starts each by itself, as JupyterLab does. PSS counts a page of memory that n processes
share as 1/n; private is what goes when the kernel goes. Linux alone: read from /proc. Megabytes
are of 10^6 bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from processes import kernels_of

from explorer.serve import server as serve
from explorer.serve import warm

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-sync"]  # fmt: skip
# Tab of the stage, what runs there, and the button that starts it.
STAGES = (
    ("Train", "training", "Play"),
    ("Attack", "the attack", "Play"),
    ("Compare", "comparing attacks", "Run"),
    ("Landscape", "the landscape", "Attack from all"),
)
SETTLE_MS = 3_000  # arbitrary: the page is drawn, and the kernel idle again


def memory(pid: int) -> tuple[float, float]:
    """PSS and private memory of a process, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilo = {key: int(n) for key, n in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    private = kilo["Private_Clean"] + kilo["Private_Dirty"]
    return kilo["Pss"] * 1.024e-3, private * 1.024e-3


def row(name: str, pids: list[int]) -> None:
    """One line of the table, over the processes."""
    pss, private = zip(*(memory(pid) for pid in pids), strict=True)
    cells = [f"{statistics.median(v):6.0f} {max(v):6.0f}" for v in (pss, private)]
    print(f"{name:34s} {cells[0]}    {cells[1]}", flush=True)


def opened(browser: Browser, url: str) -> Page:
    """The page of one visitor, with its points."""
    page = browser.new_context(viewport={"width": 1366, "height": 900}).new_page()
    page.goto(url, wait_until="commit")
    page.locator(".mx-opening-own").click()  # an empty plane
    page.locator("#opening").wait_for(state="detached", timeout=120_000)
    page.locator(".mx-plane .mx-pad-surface").wait_for(timeout=120_000)
    page.locator(".mx-thumb").filter(has_text="Alternating circle").click()
    return page


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--visitors", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plain", action="store_true", help="kernels started one by one")
    parser.add_argument("--training", action="store_true", help="stop after the training")
    options = parser.parse_args()
    if options.plain:
        os.environ[warm.FORK] = "0"
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    kind = "plain" if options.plain else "forked"
    print(f"{options.visitors} visitors; MB   PSS: median, most   private: median, most   ({kind})")
    with serve.start(port=0) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        own = server.process.pid
        pages = [opened(browser, server.url) for _ in range(options.visitors)]
        kernels = kernels_in_use(own, options.visitors)
        pages[-1].wait_for_timeout(SETTLE_MS)
        row("a kernel, its page open", kernels)
        for stage, name, first in STAGES[: 1 if options.training else None]:
            for page in pages:
                turn_to(page, stage, first)
            pages[-1].wait_for_timeout(1000 * options.seconds)
            row(f"after {options.seconds:g} s of {name}", kernels)
        if not options.training:
            real_images(browser, server.url, own, options.seconds)
        row("the server itself", [own])
        if not options.plain:
            row("what it forks from", [psutil.Process(kernels[0]).ppid()])
        browser.close()


def kernels_in_use(own: int, visitors: int) -> list[int]:
    """The kernels that have worked most: others wait for a visitor."""
    known = sorted(kernels_of(own), key=lambda kernel: -sum(kernel.cpu_times()[:2]))
    return [kernel.pid for kernel in known[:visitors]]


def turn_to(page: Page, stage: str, first: str) -> None:
    """Turn to a stage and start what it runs."""
    pause = page.locator('.mx-transport button[aria-label="Pause"]')
    if pause.count():
        pause.click()
    page.locator(".mx-head button", has_text=stage).first.click()
    if first == "Play":
        page.locator('.mx-transport button[aria-label="Play"]').click()
    else:
        page.locator(".mx-app button", has_text=first).first.click()


def real_images(browser: Browser, url: str, own: int, seconds: float) -> None:
    """The kernel of one visitor of the page on real images: trained, and under attack."""
    before = {kernel.pid for kernel in kernels_of(own)}
    page = browser.new_context(viewport={"width": 1366, "height": 900}).new_page()
    page.goto(f"{url}voila/render/digits.ipynb")
    train = page.locator(".mx-app button", has_text="Train")
    train.wait_for(timeout=120_000)
    kernels = [kernel.pid for kernel in kernels_of(own) if kernel.pid not in before]
    train.click()
    page.get_by_text("The network is trained").wait_for(timeout=600_000)
    row("real images, trained", kernels)
    page.locator(".mx-app button", has_text="Attack").first.click()
    page.wait_for_timeout(1000 * seconds)
    row(f"after {seconds:g} s of the attack there", kernels)


if __name__ == "__main__":
    main()
