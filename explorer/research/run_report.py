"""A run on one page of HTML: what is needed to cite it and to do it again."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from typing import Any

from explorer.engine.data import write_csv
from explorer.engine.energy.starts import mix_weights
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.research.code import command_of, python_of
from explorer.research.pictures import planes
from explorer.research.repeat import Repeated
from explorer.research.report import (
    list_html,
    of_repeated,
    page_html,
    picture_html,
    pre_html,
    source_of,
    table_html,
)
from explorer.research.state import link_of
from explorer.research.words import verdicts

SETS = ("truth", "unseen points", "noise")
BIBTEX = """\
@software{{margin_explorer,
  author  = {{{{Margin Explorer developers}}}},
  title   = {{Margin Explorer}},
  version = {{{}}},
  license = {{BSD-3-Clause}},
}}"""
PAPERS = (
    "Lyu and Li (2020), Gradient Descent Maximizes the Margin of Homogeneous Neural Networks, ICLR",
    "Haim et al. (2022), Reconstructing Training Data from Trained Neural Networks, NeurIPS",
)


def page_of(made: Repeated, address: str = "") -> str:
    """Return a page of HTML without scripts: picture, numbers, settings, how to do it again.

    Args:
        made: the run.
        address: of the page that the link opens on; without one it is text alone.
    """
    run, link = made.run, link_of(made.run, address)
    shown = f'<pre><a href="{escape(link)}">{escape(link)}</a></pre>' if address else pre_html(link)
    again = [
        "<p>The same run as a link:</p>", shown,
        "<p>From the command line:</p>", pre_html(command_of(run)),
        "<p>In Python:</p>", pre_html(python_of(run)),
        "<p>Made with:</p>", list_html(f"{k} {v}" for k, v in run.versions.items()),
    ]  # fmt: skip
    rests = f"<p>What it rests on:</p>{list_html([*PAPERS, *papers_of(made)])}"
    count = f"<summary>{run.dataset.n} points as CSV</summary>"
    return page_html(title_of(made), [what_of(made)], {
        "": _picture(made),
        "Numbers": table_html(of_repeated(made).rows),
        "Settings": f'<div class="settings">{table_html(_settings(made))}</div>',
        "Do it again": "".join(again),
        "Cite": pre_html(bibtex_of(run)) + rests,
        "Points": f"<details open>{count}{pre_html(write_csv(run.dataset))}</details>",
    })  # fmt: skip


def title_of(made: Repeated) -> str:
    """Return in a few words what came of it."""
    if made.attacked is not None and made.attacked.verdict is not None:
        return verdicts.verdict(made.attacked.verdict)
    if made.state is not None:
        return f"{made.run.dataset.n} points, trained for {made.state.t:,} steps"
    return f"{made.run.dataset.n} points"


def what_of(made: Repeated) -> str:
    """Say in one line what was run on what."""
    data, parts = made.run.dataset, []
    if made.attacked is not None:
        parts.append(f"{by_key(made.run.attack_name).title} on")
    if made.state is not None:
        end = "" if made.attacked is None else f" for {made.state.t:,} steps"
        how = "solved for" if made.run.exact else f"trained{end} on"
        parts.append(f"a {made.state.net.shape} network {how}")
    what = " ".join([*parts, f"{data.n} points in {data.d} dimension{'s' * (data.d != 1)}"])
    return f"{what[0].upper()}{what[1:]}, {source_of(data)}."


def bibtex_of(run: Run) -> str:
    """Return how to cite what made a run."""
    return BIBTEX.format(run.versions.get("margin-explorer", ""))


def papers_of(made: Repeated) -> list[str]:
    """Return what its attack rests on, beside PAPERS."""
    if made.attacked is None:
        return []
    entry = by_key(made.run.attack_name)
    known = entry.paper in ("own", "") or any(entry.paper.split()[0] in p for p in PAPERS)
    return [] if known else [f"{entry.title}: {entry.paper}"]


def _picture(made: Repeated) -> str:
    """Return the picture as SVG within the page; nothing where no plane or line has points."""
    data = made.run.dataset
    if not data.n or data.d > 2:
        return ""
    claims = None if made.attacked is None else made.attacked.claims
    net = None if made.state is None else made.state.net
    return picture_html(planes.run_figure(data, net, claims))


def _settings(made: Repeated) -> list[tuple[str, str]]:
    """Return source and seeds, then every setting: defaults change, a page does not."""
    run = made.run
    rows = [("points", source_of(run.dataset)), ("seed", str(run.seed))]
    if made.state is not None:
        rows += _fields("training", run.train_config)
    if made.attacked is not None:
        seed = run.seed if run.attack_seed is None else run.attack_seed
        entry = by_key(run.attack_name)
        rows += [("attack", entry.title), ("seed of the attack", str(seed))]
        if entry.takes_start:
            shares = zip(mix_weights(*(run.mix or (0.0, 0.0))), SETS, strict=True)
            rows.append(
                ("start", ", ".join(f"{100 * share:.3g}% {name}" for share, name in shares))
            )
        rows += _fields("attack", run.attack_config or by_key(run.attack_name).config())
    return rows


def _fields(who: str, config: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - of any class
    return [(f"{who}: {f.name}", repr(getattr(config, f.name))) for f in fields(config)]
