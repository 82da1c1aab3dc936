"""The verb `univariate`: the provable attack on the line, with its groups and what it claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from explorer.commands import base, options
from explorer.commands.outputs import check_files
from explorer.engine.attacks.univariate import (
    ATTACK,
    UnivariateConfig,
    UnivariateState,
    doubt_words,
)
from explorer.research import report, runs
from explorer.research.pictures.figures import line_picture
from explorer.research.words import verdicts

ON_LINE = options.Points("alternating-line")
EXACTLY = options.TrainingOptions(method=options.Method.exact)


@options.grouped
def univariate(
    points: options.Points = ON_LINE, training: options.TrainingOptions = EXACTLY,
    device: options.Where = options.Device.cpu, settings: options.Set = None,
    out: Annotated[Path, options.option("--out", "The picture.")] = Path("univariate.png"),
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Attack a network of one input: groups, guarantee, proven or likely points."""
    data, seed = points.draw(), points.seed
    if data.d != 1:
        raise ValueError(
            f"the univariate attack needs points on a line; got {data.d}-D points. "
            "Take --preset alternating-line."
        )
    config = base.attack_config(ATTACK.key, settings)
    check_files(out)
    trained = training.train(data, training.config(), seed, device)
    target, made, _ = runs.aim(trained.net, data, None)
    done = runs.attack(
        target, config, seed, name=ATTACK.key, truth=data, certificate=made, watch=base.watch,
        device=device.value,
    )  # fmt: skip
    state = done.states[-1]
    assert isinstance(state, UnivariateState) and isinstance(config, UnivariateConfig)
    account = ATTACK.words(state, config)
    line_picture(out, target, state, data, account)
    verdict = verdicts.verdict(done.verdict) if done.verdict else ""
    content = {
        **report.of_training(data, trained),
        "attack": {**_content(state), "sentence": account},
        "claims": [
            {"x": x[0], "y": int(y)}
            for x, y in zip(done.claims.x.tolist(), done.claims.y.tolist(), strict=True)
        ],
        "verdict": verdict,
        "picture": out,
    }
    rows = [*report.training_rows(data, trained), *_rows(state), ("last step", account)]
    rows.append(("verdict", verdict))
    base.show_result(as_json, content, "The provable attack", [*rows, ("picture", str(out))])


def _content(state: UnivariateState) -> dict[str, Any]:
    columns = zip(
        state.x[:, 0].tolist(), state.y.tolist(), state.lam.tolist(), state.least.tolist(),
        state.most.tolist(), state.proven.tolist(), state.likely.tolist(), strict=True,
    )  # fmt: skip
    return {
        "steps": state.t,
        "tolerances": "exact" if state.exact else "trained",
        "defect": state.defect,
        "doubt": doubt_words(state),
        "groups": [
            {"rule": g.rule, "low": g.low, "high": g.high, "x": g.x, "counted": g.counted}
            for g in state.groups
        ],
        "guaranteed": state.guaranteed,
        "alone": state.alone,
        "miss": state.miss,
        "residual": state.residual,
        "candidates": [
            {
                "x": x,
                "y": int(y),
                "lam": lam,
                "least": least,
                "most": most,
                "proven": proven,
                "likely": likely,
            }
            for x, y, lam, least, most, proven, likely in columns
        ],
    }


def _rows(state: UnivariateState) -> list[tuple[str, str]]:
    exact = f"an exact KKT point, to {state.defect:.0e}"
    rows = [
        ("tolerances", "exact" if state.exact else "trained"),
        ("weights", f"not certified: {doubt_words(state)}" if state.doubt else exact),
    ]
    for i, g in enumerate(state.groups):
        places = ", ".join(f"{x:.4f}" for x in g.x) or "no candidate"
        rows.append((f"group {i + 1} ({g.rule})", f"[{g.low:.4f}, {g.high:.4f}]: {places}"))
    share = f"{state.guaranteed:.0%} of {len(state.x)} candidates"
    if any(g.rule == "3.3" for g in state.groups):
        share += ", if (a) and (b) hold"
    rows.append(("guaranteed", "nothing: see weights" if state.doubt else share))
    rows.append(("passed over", ", ".join(map(str, state.alone)) or "no interval"))
    for name, kept in (("proven", state.proven), ("likely", state.likely)):
        rows.append((name, ", ".join(f"{x:.4f}" for x in state.x[kept, 0].tolist()) or "none"))
    return rows


VERBS = {"univariate": univariate}
