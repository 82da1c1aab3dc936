"""The verb `digits`: one attack on a network trained on real images, its scores and its picture."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import torch

from explorer.commands.base import assignments, show, watch
from explorer.commands.options import (
    LAYERS,
    MOST_SEED,
    AttackType,
    Device,
    Json,
    Set,
    TrainSet,
    Where,
    expand_groups,
    fields,
    option,
    setting_option,
)
from explorer.commands.outputs import check_files
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data.images import Choice, draw
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.network import Network
from explorer.engine.roster import by_key
from explorer.engine.settings import setting_of
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.research import image_runs
from explorer.research.devices import check_device
from explorer.research.image_runs import (
    STARTS,
    ImageComparison,
    ImageRun,
    accuracy,
    carried_numbers,
)
from explorer.research.pictures import image_sheets
from explorer.research.quiz import quiz
from explorer.research.report import Summary, lines, values
from explorer.research.words import verdicts
from explorer.research.words.weights import training_errors
from explorer.style import PROVEN

COLUMNS = 10  # arbitrary: pairs per row of the picture
CHOICE, RUN = Choice(), ImageRun()
Images = Annotated[Choice, fields(
    kind="--images", folder="--folder", task="--task", n="--n",
)]  # fmt: skip
Run = Annotated[ImageRun, fields(
    widths=setting_option("--widths", TrainConfig, "widths", LAYERS),
    train_steps="--steps",
    init_scale=option("--init-scale", "Of the first layer; 0.8/√d, or 0.24/√d for more layers."),
    attack="--attack", start="--start", steps="--attack-steps",
    seed=option("--seed", "Of images, weights and candidates.", min=0, max=MOST_SEED),
    vote="--vote", measure="--measure", starts="--starts", errors="--errors",
)]  # fmt: skip


@expand_groups
def digits(
    choice: Images = CHOICE,
    run: Run = RUN,
    out: Annotated[Path, option("--out", "The picture.")] = Path("digits.png"),
    best: Annotated[
        int | None, option("--best", "Pairs in the picture, the best first; else all.", min=1)
    ] = None,
    asked: Annotated[
        Path | None,
        option(
            "--quiz",
            "A picture of ten images, of which four trained the network, to guess which.",
        ),
    ] = None,
    knows: Annotated[str, setting_option("--knows", KKTConfig, "knows")] = KKTConfig.knows,
    threads: Annotated[
        int | None,
        option("--threads", "Of the processor, in place of OMP_NUM_THREADS or one.", min=1),
    ] = None,
    training: TrainSet = None,
    settings: Set = None,
    device: Where = Device.cpu,
    dtype: AttackType = None,
    as_json: Json = False,
) -> None:
    """Attack a network trained on real images: share matched, held-out control, a picture."""
    if threads is not None:
        limit_threads(threads)
    kind = by_key(run.attack).config
    given = assignments(kind, settings, run.attack)
    if knows != KKTConfig.knows:
        given |= {setting_of(kind, "knows", run.attack).name: knows}
    run = replace(
        run, choice=replace(choice, seed=run.seed),
        train_settings=assignments(TrainConfig, training, "the training"),
        attack_settings=given,
    )  # fmt: skip
    check_device(device.value)
    check_files(out, asked)
    begun = perf_counter()
    kept = None if dtype is None else getattr(torch, dtype.value)
    found, net = image_runs.train_and_attack(draw(run.choice), run, watch, device.value, kept)
    row = {**numbers(found), **weights(run, net), "seconds": perf_counter() - begun}
    image_sheets.write(out, picture(run, found, best))
    if asked is not None:
        row |= _quiz_rows(run, found, asked)
    made = Summary([], {"config": asdict(run), **curves(found)}) + lines({**row, "picture": out})
    show(as_json, f"{by_key(run.attack).title} from {STARTS[run.start]}", made)


def _quiz_rows(run: ImageRun, found: ImageComparison, path: Path) -> dict[str, Any]:
    """Write a quiz as two rows of five; return what the attack answers, and which are right."""
    made = quiz(draw(run.choice), found.found, run.seed)
    image_sheets.write(path, image_sheets.pairs(made.images, None, [""] * len(made.images), 5))
    places = {"quiz_attack": made.answer, "quiz_right": made.trained}
    return {"quiz": path} | {
        name: ", ".join(str(k + 1) for k in which.nonzero()[:, 0].tolist())
        for name, which in places.items()
    }


def weights(run: ImageRun, net: Network) -> dict[str, Any]:
    """Return how often the network is right, how many numbers it holds, and how near to KKT."""
    drawn = draw(run.choice)
    train, unseen = (accuracy(net, sets) for sets in ([drawn.train], drawn.controls))
    row: dict[str, Any] = {
        "train_accuracy": train, "test_accuracy": unseen,
        "numbers": carried_numbers(net), "pixels": drawn.train.n * drawn.train.d,
    }  # fmt: skip
    if note := training_errors(round((1 - train) * drawn.train.n), drawn.train.n):
        row["note"] = note
    if net.homogeneous:
        target = Target.of(net, 1.0)
        row["neurons"] = list(target.merged(MERGE_ANGLE).widths)
        if net.outputs == 1 and train == 1:  # with ten the certificate takes minutes
            row["residual"] = certify(net, drawn.train.x, drawn.train.y).residual
    return row


def curves(found: ImageComparison) -> dict[str, Any]:
    """Return the counts by each measure, and the rates of matches at every threshold of NCC."""
    names = ("found", "n", "unseen", "of_controls", "most", "p_value")
    measures = {name: values(made, *names) for name, made in found.verdicts.items()}
    rates = {name: getattr(found.roc, name).tolist() for name in ("fpr", "tpr")}
    made = {"measures": measures, "roc": rates}
    if (chosen := found.selection) is not None:
        made["selection"] = values(chosen, "agreement", "ncc", "of")
    return made


def numbers(found: ImageComparison) -> dict[str, Any]:
    """Return the row of the table."""
    return {
        "matched": found.verdict.share,
        "held_out": found.chance,
        "held_out_most": found.verdict.most,
        "partition": found.start_share,
        "median_ssim": float(found.truth.ssim.median()),
        "median_ncc": float(found.truth.ncc.median()),
        "diversity": found.diversity,
        "roc_area": found.roc.auc,
        "p_value": found.verdict.p_value,
        **_selection_row(found),
        "verdict": verdicts.images(found.verdicts, found.measure),
    }


def _selection_row(found: ImageComparison) -> dict[str, Any]:
    """Return how many of the best n/2 clusters are right, chosen without and with the truth."""
    if (chosen := found.selection) is None:
        return {}
    k = min(len(chosen.ncc), max(1, found.verdict.n // 2))
    return {
        "chosen": k,
        "precision": chosen.precision(k),
        "precision_knowing": chosen.precision(k, True),
    }


def picture(run: ImageRun, found: ImageComparison, best: int | None) -> image_sheets.Pixels:
    """Return pairs of training image and candidate, the best first; matched ones framed."""
    drawn = draw(run.choice)
    order = found.order[:best]
    frames = [PROVEN if m else "" for m in found.matched[order].tolist()]
    truth = drawn.pictures(drawn.train.x)[order]
    return image_sheets.pairs(truth, found.truth.images[order], frames, COLUMNS)


VERBS: dict[str, Any] = {"digits": digits}
