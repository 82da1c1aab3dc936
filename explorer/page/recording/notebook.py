"""A page that plays in the output of a cell: it stays in the notebook, without its kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from explorer.engine.files import write_file
from explorer.engine.store import Run, load_run
from explorer.page.recording.document import page_that_plays
from explorer.research.repeat import with_states
from explorer.research.runs import in_own_unit
from explorer.research.state import is_link, read_link

HEIGHT = 640  # px of a cell's output; arbitrary


@dataclass(frozen=True)
class PlayingPage:
    """A run that plays without Python: a cell shows it, a file keeps it.

    Attributes:
        html: the whole page, one file.
        height: of a cell's output, in px.
    """

    html: str = field(repr=False)
    height: int = HEIGHT

    def save(self, path: str | Path) -> None:
        """Write the page to a file of HTML; one that is there is replaced.

        Raises:
            OSError: where it cannot be written.
        """
        write_file(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, which runs its own scripts and reaches nothing."""
        return (
            f'<iframe title="A run that plays" sandbox="allow-scripts allow-downloads" '
            f'srcdoc="{escape(self.html)}" '
            f'style="width:100%;height:{self.height}px;border:0;border-radius:8px"></iframe>'
        )


def play(run: Run | str | Path, height: int = HEIGHT) -> PlayingPage:
    """Return a run as a page that plays without Python, for the output of a cell.

    It still plays in a saved notebook whose kernel is gone, as one file it can be sent.

    Args:
        run: a run with its states; one without is trained and attacked first, as its steps say. Or
            the file of a run, or a link.
        height: of the output, in px.

    Returns:
        The page: `.save("run.html")` writes it.

    Raises:
        StoreError: for a file that is no run, or a run without points on a plane or a line, or
            without a step.

    Example:
        >>> from explorer import Run, TrainConfig, play, preset
        >>> page = play(Run(preset("blobs", n=6), TrainConfig(widths=(8,)), steps=(30, 0)))
        >>> page.html.startswith("<!doctype html>")
        True
    """
    if not isinstance(run, Run):
        run = read_link(str(run)) if is_link(str(run)) else load_run(run)
    return PlayingPage(page_that_plays(in_own_unit(with_states(run))), height)
