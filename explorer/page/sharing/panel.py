"""Share: a link to this moment, its code, and its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.engine import store
from explorer.engine.data import write_csv, write_npz
from explorer.engine.progress import Progress, with_progress
from explorer.page.ask import Ask
from explorer.page.controls.control import ShareBox
from explorer.page.frame import Frame
from explorer.page.job import do_nothing, once
from explorer.page.panels.base import Panel
from explorer.page.recording.document import page_that_plays
from explorer.page.recording.landscape import KnownStarts
from explorer.page.session import NETWORK, Session
from explorer.page.sharing import files
from explorer.page.sharing.run import film_of, gap, made_of, run_of_page
from explorer.page.sharing.words import (
    FILES,
    MAKING,
    MAKING_PAGE,
    NO_VIDEO,
    RECORDING,
    only_here,
    size_of,
)
from explorer.research.code import command_of, notebook_of, python_of
from explorer.research.pictures import painting, planes
from explorer.research.run_report import page_of
from explorer.research.state import link_of

# Of a film: its run, the name and the media type. The browser makes the video, and ends its name.
FILMS = {
    "train": ("train", "training.gif", "image/gif"), "train-video": ("train", "training", ""),
    "attack": ("attack", "attack.gif", "image/gif"), "attack-video": ("attack", "attack", ""),
}  # fmt: skip


class SharePanel(Panel):
    """On top of the drawer of Share, with its heading."""

    every_s = 1.0  # a link is read when nothing moves
    follows = ("running",)

    def __init__(
        self, session: Session, unfolded: bool, on_link: Callable[[str], None],
        on_close: Callable[[], None] = do_nothing,
    ) -> None:  # fmt: skip
        """`on_link` opens what is pasted, as a link of the address; `on_close` closes it."""
        self._on_link, self._on_close = on_link, on_close
        super().__init__(session, unfolded)

    def build(self) -> None:
        """One control; films are made beside the page."""
        self.job = Ask(self)
        self.view = self.widget = ShareBox(
            {
                "save": self.command_among((*FILMS, *SAVED, "page"), self._on_save),
                "open": self.command_of(str, self._on_link),
                "recorded": self._on_recorded,
                "close": lambda _: self._on_close(),
            },
            ("mx-share",),
        )

    def render(self, frame: Frame) -> None:
        """Show the link and the code of this moment, and what can be saved of it."""
        run = run_of_page(self.session)
        link = link_of(run) if run.dataset.n else ""
        self.view.show(
            link=link, note=(link and gap(self.session)) or size_of(link, run), files=_rows(frame),
            python=python_of(run) if link else "", command=command_of(run) if link else "",
            notebook=notebook_of(run) if link else "", only_here=only_here(NETWORK),
            network=NETWORK,
        )  # fmt: skip

    def _on_recorded(self, made: Any) -> None:  # noqa: ANN401 - from a browser
        self.tell("" if made is True else NO_VIDEO)

    def _on_save(self, key: str) -> None:
        if key in FILMS:
            self._film(*FILMS[key])
        elif key == "page":
            self._page()
        else:
            name, kind, make = SAVED[key]
            self.view.hand_over(name, kind, make(self))

    def _page(self) -> None:
        """Make the page that plays in a thread."""
        now = self.session.frame
        run, aim, held = files.as_run(self.session), now.aim, now.starts
        known = None
        if held is not None and held.energies is not None and held.runs is not None and now.newest:
            known = KnownStarts(held, held.runs)
        self.tell(MAKING_PAGE)

        def make(progress: Progress) -> bytes:
            certainty = None if aim is None else aim.certainty
            return page_that_plays(run, certainty, progress, known or False).encode()

        def take(made: bytes) -> None:
            self.tell("")
            self.view.hand_over("run.html", "text/html", made)

        self.job.begin(once(make), take)

    def _film(self, of: str, name: str, kind: str) -> None:
        """Draw a film in a thread, frame by frame; one without a `kind` is made by the browser."""
        size = planes.PIXELS if kind else planes.VIDEO
        count, frames = film_of(self.session, of, size)
        self.tell(MAKING)

        def make(progress: Progress) -> tuple[Any, list[int]]:
            drawn = list(with_progress(frames, count, progress))
            return planes.gif(drawn) if kind else planes.jpegs(drawn), planes.times(drawn)

        def take(made: tuple[Any, list[int]]) -> None:
            content, times = made
            self.tell("" if kind else RECORDING.format(sum(times) / 1000))
            if kind:
                self.view.hand_over(name, kind, content)
            else:
                self.view.send({"kind": "frames", "name": name, "times": times}, content)

        self.job.begin(once(make), take)

    def picture(self, kind: str) -> bytes:
        """Return the plane and the margins as matplotlib draws them for paper."""
        made = made_of(self.session)
        attacked, state = made.attacked, made.state
        figure = planes.run_figure(
            made.run.dataset,
            None if state is None else state.net,
            None if attacked is None else attacked.claims,
        )
        return painting.as_bytes(figure, kind)


BYTES = "application/octet-stream"
# The name and the media type of what is saved, and what makes it.
SAVED: dict[str, tuple[str, str, Callable[[SharePanel], bytes]]] = {
    "csv": ("points.csv", "text/csv",
            lambda panel: write_csv(panel.session.frame.dataset).encode()),
    "npz": ("points.npz", BYTES, lambda panel: write_npz(panel.session.frame.dataset)),
    "run": ("run.safetensors", BYTES, lambda panel: store.dump(
        replace(files.as_run(panel.session), stage=panel.session.frame.stage))),
    "pdf": ("picture.pdf", "application/pdf", lambda panel: panel.picture("pdf")),
    "svg": ("picture.svg", "image/svg+xml", lambda panel: panel.picture("svg")),
    "png": ("picture.png", "image/png", lambda panel: panel.picture("png")),
    "report": ("report.html", "text/html",
               lambda panel: page_of(made_of(panel.session)).encode()),
}  # fmt: skip


def _rows(frame: Frame) -> list[list[Any]]:
    """Return what can be saved, each with its kinds; what is not there yet cannot be pressed."""
    state, attacked = frame.training.state, frame.attack.state
    over = {"train": state is None or not state.t, "attack": attacked is None or not attacked.t}
    missing = {key: over[of] for key, (of, *_) in FILMS.items()} | {"page": over["train"]}
    none = not frame.dataset.n
    return [
        [name, [{"key": key, "label": label, "tip": tip, "off": missing.get(key, none)}
                for key, label, tip in kinds]]
        for name, kinds in FILES
    ]  # fmt: skip
