"""Memory that a visitor takes on the server: the page's kernel, opened, and after play.

    python benchmarks/bench_memory.py [--visitors 3] [--seconds 60]

Chromium opens the page for each visitor, with the alternating circle of 20 points; then every page
plays, attacks, and runs the arena and the grid of starts. Last, one visitor of the page on real
images trains and attacks there. PSS counts a page of memory that n processes share as 1/n; private
is what goes when the kernel goes. Linux alone: read from /proc. Megabytes are of 10^6 bytes.
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

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-sync"]  # fmt: skip
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
    circle = page.get_by_title("Draw a ready-made dataset")
    circle.select_option(label="Alternating circle (2-D)")
    return page


def press(page: Page, name: str) -> None:
    """Press a button by its words."""
    words = re.compile(rf"^\s*{re.escape(name)}\s*$")
    page.locator(".mx-app button").filter(has_text=words).click()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--visitors", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    print(f"{options.visitors} visitors; MB   PSS: median, most   private: median, most")
    with serve.start(port=0) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        own = server.process.pid
        pages = [opened(browser, server.url) for _ in range(options.visitors)]
        pages[-1].wait_for_timeout(SETTLE_MS)
        kernels = [kernel.pid for kernel in kernels_of(own)]
        row("a kernel, its page open", kernels)
        for page in pages:
            press(page, "Play")
        pages[-1].wait_for_timeout(1000 * options.seconds)
        row(f"after {options.seconds:g} s of training", kernels)
        for page in pages:
            press(page, "Pause")
            press(page, "3 Attack")
            press(page, "Play")
        pages[-1].wait_for_timeout(1000 * options.seconds)
        row(f"after {options.seconds:g} s of the attack", kernels)
        for page in pages:
            press(page, "5 Arena")
            press(page, "Run the attacks")
        pages[-1].wait_for_timeout(1000 * options.seconds)
        row(f"after {options.seconds:g} s of the arena", kernels)
        for page in pages:
            press(page, "6 Landscape")
            press(page, "Run the grid")
        pages[-1].wait_for_timeout(1000 * options.seconds)
        row(f"after {options.seconds:g} s of the grid", kernels)
        real_images(browser, server.url, own, options.seconds)
        row("the server itself", [own])
        row("what it forks from", [psutil.Process(kernels[0]).ppid()])
        browser.close()


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
    press(page, "Attack")
    page.wait_for_timeout(1000 * seconds)
    row(f"after {seconds:g} s of the attack there", kernels)


if __name__ == "__main__":
    main()
