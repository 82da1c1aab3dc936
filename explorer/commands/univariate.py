"""The verb `univariate`: the provable attack on the line, with its groups and what it claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from explorer.commands import base, options
from explorer.commands.outputs import check_files
from explorer.engine.attacks.univariate import ATTACK, UnivariateState
from explorer.engine.attacks.univariate.config import UnivariateConfig
from explorer.engine.attacks.univariate.doubt import doubt_words
from explorer.research import report, runs
from explorer.research.pictures.figures import line_picture
from explorer.research.report import Rows, Summary
from explorer.research.words import verdicts

ON_LINE = options.Points("alternating-line")
EXACTLY = options.TrainingOptions(method=options.Method.exact)


@options.expand_groups
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
    trained = options.train(training.run_on(data, seed), device)
    done = runs.attack(
        trained.target, config, seed, name=ATTACK.key, truth=data,
        certificate=trained.certificate, watch=base.watch, device=device.value,
    )  # fmt: skip
    state = done.states[-1]
    assert isinstance(state, UnivariateState) and isinstance(config, UnivariateConfig)
    account = ATTACK.words(state, config)
    line_picture(out, trained.target, state, data, account)
    verdict = verdicts.verdict(done.verdict) if done.verdict else ""
    claims = zip(done.claims.x[:, 0].tolist(), done.claims.y.tolist(), strict=True)
    found = report.of_training(trained) + Summary(
        [*_rows(state), ("last step", account)],
        {
            "attack": {**_content(state), "sentence": account},
            "claims": [{"x": x, "y": int(y)} for x, y in claims],
        },
    )
    found += report.line("verdict", verdict) + report.line("picture", out)
    base.show(as_json, "The provable attack", found)


def _content(state: UnivariateState) -> dict[str, Any]:
    columns = report.values(state, "lam", "least", "most", "proven", "likely")
    columns = {"x": state.x[:, 0], "y": state.y.int(), **columns}
    candidates = [
        {name: column[i].item() for name, column in columns.items()} for i in range(len(state.x))
    ]
    return {
        "steps": state.t, "tolerances": "exact" if state.exact else "trained",
        "doubt": doubt_words(state), "candidates": candidates,
        "groups": [report.values(g, "rule", "low", "high", "x", "counted") for g in state.groups],
        **report.values(state, "defect", "alone", "miss", "residual"),
        "guaranteed": state.guaranteed_share,
    }  # fmt: skip


def _rows(state: UnivariateState) -> Rows:
    exact = f"an exact KKT point, to {state.defect:.0e}"
    rows = [
        ("tolerances", "exact" if state.exact else "trained"),
        ("weights", f"not certified: {doubt_words(state)}" if state.doubt else exact),
    ]
    for i, g in enumerate(state.groups):
        places = ", ".join(f"{x:.4f}" for x in g.x) or "no candidate"
        rows.append((f"group {i + 1} ({g.rule})", f"[{g.low:.4f}, {g.high:.4f}]: {places}"))
    share = f"{state.guaranteed_share:.0%} of {len(state.x)} candidates"
    if any(g.rule == "3.3" for g in state.groups):
        share += ", if (a) and (b) hold"
    rows.append(("guaranteed", "nothing: see weights" if state.doubt else share))
    rows.append(("passed over", ", ".join(map(str, state.alone)) or "no interval"))
    for name, kept in (("proven", state.proven), ("likely", state.likely)):
        rows.append((name, ", ".join(f"{x:.4f}" for x in state.x[kept, 0].tolist()) or "none"))
    return rows


VERBS = {"univariate": univariate}
