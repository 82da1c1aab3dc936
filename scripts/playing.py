"""Make the pages that play which the site of the docs links to, from seeds.

    python scripts/playing.py build/docs

Each is an example of the page (explorer/research/scenarios.py), trained and attacked to its end, a
row of docs/papers.md on the plane or the line (benchmarks/bench_papers.py), or a lesson, as one
file of HTML in the folder `playing` of the site. The story is its first page. `make docs` calls it
after the site is built; docs/plays.md, docs/papers.md and docs/lessons.md link to the files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import torch

from explorer.engine import training
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.page.lessons.file import packaged_lessons
from explorer.page.recording.document import page_that_plays
from explorer.page.recording.lesson import lesson_that_plays
from explorer.page.recording.story import story_page
from explorer.research.repeat import with_states
from explorer.research.scenarios import by_name

STATES = 100  # of an attack whose settings plan no steps; as `repeat` keeps
# The example, and whether the landscape of its starts is computed.
PAGES = {
    "circle": ("alternating circle", True),
    "three-layers": ("random circle", False),
    "moons": ("moons", False),
    "line": ("alternating line", False),
    "hinges": ("hinges", False),
    "three-classes": ("three classes", False),
    "algorithm-1": ("proof on the line", False),
}
# Figure 2 of Haim et al.: widths, and the published run whose settings the attack takes, if any.
ROWS = {
    "figure-2": ((1000, 1000), ""),
    "figure-2-wide": ((1000,), ""),
    "figure-2-deep": ((100, 100), ""),
    "figure-2-published": ((1000,), "MNIST kcf9bhbi"),
}


def whole_run(name: str) -> Run:
    """Return the run of an example, with all steps of its attack."""
    run = by_name(name).run
    entry = by_key(run.attack_name)
    steps = entry.step_count(run.attack_config or entry.config(), STATES)
    return replace(run, steps=(run.steps[0], steps), stage="attack", repeatable=True)


def figure_2(widths: tuple[int, ...], published: str) -> Run:
    """Return a row's run of seed 0: a circle of 20, the default attack or a published one."""
    data, plan = preset("alternating-circle", n=20), TrainConfig(widths=widths, steps=10_000)
    config = KKTConfig()
    if published:
        state = training.init(data, plan, torch.Generator().manual_seed(0))
        state = training.advance(data, state, plan, plan.steps)
        target = Target.of(state.net, state.q_min)
        config = KKTConfig.from_paper(target, published, m=100, steps=50_000)
    steps = (plan.steps, config.steps)
    return Run(data, plan, attack_config=config, stage="attack", steps=steps, repeatable=True)


def main(site: Path, tell: Callable[[str], object] = print) -> None:
    limit_threads()
    (site / "playing").mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], str]] = {"index": lambda: story_page("contents.html")}
    for key, (name, starts) in PAGES.items():
        makers[f"playing/{key}"] = lambda name=name, starts=starts: page_that_plays(  # type: ignore[misc]
            with_states(whole_run(name)), starts=starts
        )
    for key, row in ROWS.items():
        makers[f"playing/{key}"] = lambda row=row: page_that_plays(with_states(figure_2(*row)))  # type: ignore[misc]
    for k, lesson in enumerate(packaged_lessons()):
        makers[f"playing/lesson-{k}"] = lambda lesson=lesson: lesson_that_plays(lesson)  # type: ignore[misc]
    for key, make in makers.items():
        begun = perf_counter()
        page = make()
        (site / f"{key}.html").write_text(page, encoding="utf-8")
        tell(f"{key}.html  {len(page.encode()) / 1000:.0f} kB  {perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
