"""An attack on a network of images, as frames: candidates beside the images they are nearest to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from explorer.engine.arrays import Array, as_array
from explorer.engine.data.images import Draw, draw
from explorer.engine.number_words import share
from explorer.engine.scoring import Kind
from explorer.page.lessons.goals import SMALL_SCALE
from explorer.page.recording.frames import RecordedFrame
from explorer.page.stages.attack.found_words import recovered_images
from explorer.research import image_runs, runs
from explorer.research.image_runs import ImageComparison, ImageRun

SMALL_STEPS = 4000  # of training from so small a scale; with fewer it does not separate the images
STANDS = 16  # frames that an end stands; arbitrary: a second
VALUES = {"images": True}  # instead of a plane


def image_frames(
    run: ImageRun, most: int, named: str = ""
) -> tuple[list[RecordedFrame], dict[str, str]]:
    """Train on images and attack; return the frames, and numbers of the end by name.

    Args:
        run: of one start, from noise.
        most: states of the attack that are shown.
        named: what tells this network from others of the recording.

    Raises:
        RunFailed: where the images are not separated, or the attack diverges.
    """
    given = draw(run.choice)
    trained = runs.train(run.run_on(given), keep=1)
    aimed = image_runs.aim(given, run, trained.states[-1])
    start = image_runs.start_of(given, run, aimed.net.outputs)
    done = runs.attack(aimed.target, run.config, run.seed, name=run.attack, start=start, keep=most)
    made = image_runs.assess(given, aimed, done.states[-1:])
    facts = _facts(run, given, made)
    before = (("digits", facts["n"]), ("pixels a side", facts["side"]),
              ("neurons", facts["width"]), ("candidates", facts["candidates"]))  # fmt: skip
    noise = f"{named} They begin as noise.".strip()
    frames = []
    for state in done.states:
        now = _bytes(given.pictures(state.x.detach().double())[made.truth.nearest])
        words = {"title": "Candidates on their way", "words": noise, "still": noise, "tone": "",
                 "step": f"step {state.t:,}"}  # fmt: skip
        frames.append(RecordedFrame("attack", {"found": now}, VALUES, words, state.t, before))
    return [*frames, *[_end(frames[-1], given, made, facts, named)] * STANDS], facts


def _facts(run: ImageRun, given: Draw, made: ImageComparison) -> dict[str, str]:
    verdict = made.verdict
    return {
        "n": str(verdict.n), "found": str(verdict.found), "side": str(given.shape[1]),
        "width": str(run.widths[0]), "candidates": str(len(made.found)),
        "unseen": str(verdict.unseen), "chance": share(verdict.of_controls),
        "p": f"{verdict.p_value:.1g}",
    }  # fmt: skip


def _end(
    last: RecordedFrame, given: Draw, made: ImageComparison, facts: dict[str, str], named: str
) -> RecordedFrame:
    """Return the last frame with the training images beside it, and what came of it."""
    still = f"{named} Above the digit, below it the nearest candidate.".strip()
    words = {**last.words, "title": recovered_images(made),
             "words": still, "still": still,
             "tone": "good" if made.verdict.kind is Kind.FOUND else "warn"}  # fmt: skip
    arrays = {**last.arrays, "truth": _bytes(given.pictures(given.train.x)),
              "matched": as_array(made.matched.double()),
              "clear": as_array(made.clear.double())}  # fmt: skip
    fold = (*last.fold, ("found", f"{facts['found']} of {facts['n']}"), ("p", facts["p"]),
            ("of unseen digits", f"{facts['chance']} of {facts['unseen']}"))  # fmt: skip
    return replace(last, scene="end", arrays=arrays, words=words, fold=fold)


def task_frames(most: int) -> list[RecordedFrame]:
    """Return what the task of the page of images asks: a network, then one of a small scale."""
    usual = ImageRun()
    every = []
    for run in (usual, replace(usual, init_scale=SMALL_SCALE, train_steps=SMALL_STEPS)):
        named = f"First scale {run.first_scale:g}, {run.training_steps:,} steps of training."
        every += image_frames(run, most, named)[0]
    return every


def _bytes(pictures: Tensor) -> Array:
    """Return pictures (m, 1, h, w) in [0, 1] as bytes (m, h, w); others are cut."""
    made: Array = (255 * as_array(pictures[:, 0]).clip(0, 1)).round().astype(np.uint8)
    return made
