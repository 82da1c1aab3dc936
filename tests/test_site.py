"""The site of the docs is built without a warning, and its pages ask no other host.

Run by `make long`: Sphinx is not among what `make test` installs, and takes half a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# What a browser fetches by itself; a plain link (a href) is followed by the reader alone.
FETCHED = ("src", "srcset", "href", "data", "poster", "action")
SHEET = re.compile(r"""(?:@import\s+|url\(\s*)["']?((?:https?:)?//[^"')\s]+)""")
ASKS = re.compile(r"(?:https?:)?//", re.IGNORECASE)


class Asked(HTMLParser):
    """The foreign addresses that a page makes a browser fetch, in `found`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "style":
                self.found += SHEET.findall(value or "")
            elif tag != "a" and name in FETCHED and ASKS.match((value or "").strip()):
                self.found.append(f"{tag} {value}")

    def handle_data(self, data: str) -> None:
        self.found += SHEET.findall(data) if self.cdata_elem == "style" else []


def asked(text: str) -> list[str]:
    page = Asked()
    page.feed(text)
    return page.found


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, in a folder of its own."""
    missing = [n for n in ("sphinx", "myst_parser", "furo") if find_spec(n) is None]
    if missing and os.environ.get("CI", "").lower() not in ("1", "true"):
        pytest.skip(f"the extra “docs” is not installed ({', '.join(missing)}): make docs")
    folder = tmp_path_factory.mktemp("site")
    told = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(folder)],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")
    return folder


def test_every_page_and_every_exported_name_is_in_the_site(site: Path, root: Path) -> None:
    for page in (root / "docs").rglob("*.md"):
        assert site.joinpath(page.relative_to(root / "docs")).with_suffix(".html").is_file()
    assert 'id="explorer.engine.exact.maximum_margin"' in (site / "engine.html").read_text("utf-8")
    assert 'href="engine.html#explorer.engine.exact.maximum_margin"' in (
        site / "api.html"
    ).read_text("utf-8")


def test_no_page_asks_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    assert [(p.name, found) for p in pages if (found := asked(p.read_text("utf-8")))] == []
    sheets = list(site.rglob("*.css"))
    assert sheets
    assert [(p.name, found) for p in sheets if (found := SHEET.findall(p.read_text("utf-8")))] == []


@pytest.mark.parametrize(
    "text",
    ["<script src='https://a.example/b.js'></script>", '<link href="//a.example/b.css">',
     "<style>@import 'https://a.example/b.css';</style>",
     '<p style="background: url(//a.example/b.png)">'],
)  # fmt: skip
def test_what_asks_is_seen(text: str) -> None:
    assert asked(text)
    assert not asked("<a href='https://a.example/paper.pdf'>a paper</a><img src='_static/b.png'>")
