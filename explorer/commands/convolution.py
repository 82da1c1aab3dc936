"""The verb `convolution`: one attack on a small convolution, its scores and its picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from explorer.commands.base import show, watch
from explorer.commands.options import MOST_SEED, Json, expand_groups, fields, option
from explorer.commands.outputs import check_files
from explorer.research.convolutions import ConvolutionRun, Convolved, convolution_run
from explorer.research.pictures import image_sheets
from explorer.research.report import Summary, lines, values
from explorer.research.words import verdicts
from explorer.style import PROVEN

COLUMNS = {"signals": 1, "digits": 10}  # arbitrary: pairs per row of the picture
RUN = ConvolutionRun()
Run = Annotated[ConvolutionRun, fields(
    "points", "n", "samples", "filters", "side", "scale", "attack", "m", pooled="--pooled/--flat",
    train_steps="--steps", steps="--attack-steps",
    seed=option("--seed", "Of points, weights and candidates.", min=0, max=MOST_SEED),
)]  # fmt: skip


@expand_groups
def convolution(
    run: Run = RUN,
    out: Annotated[Path, option("--out", "The picture.")] = Path("convolution.png"),
    as_json: Json = False,
) -> None:
    """Attack a small convolution on signals or digits; up to shifts where it is pooled."""
    check_files(out)
    made = convolution_run(run, watch)
    frames = [PROVEN if m else "" for m in made.score.named.tolist()]
    image_sheets.write(
        out, image_sheets.pairs(made.truth, made.score.images, frames, COLUMNS[run.points])
    )
    row = {**numbers(made), "verdict": verdicts.images(made.verdicts, "rank"), "picture": out}
    content = {"config": asdict(run), "measures": {
        name: values(one, "found", "n", "unseen", "of_controls", "p_value")
        for name, one in made.verdicts.items()
    }}  # fmt: skip
    show(as_json, "A small convolution", Summary([], content) + lines(row))


def numbers(made: Convolved) -> dict[str, Any]:
    """Return the row of the table."""
    best, plain = made.verdicts["rank"], made.as_they_are["rank"]
    row = {
        "places": len(made.net.places), "weights": made.net.net.theta.numel(),
        "truth_leaves": made.residual**2, "candidates_leave": float(made.state.left),
        "found": best.found, "of_unseen": best.of_controls, "p_value": best.p_value,
        "median_ncc": float(made.score.ncc.median()),
    }  # fmt: skip
    if made.net.shift_invariant:
        row |= {"found_unshifted": plain.found, "of_unseen_unshifted": plain.of_controls}
    return row


VERBS: dict[str, Any] = {"convolution": convolution}
