"""The Python and the command that do again what a run did: what is needed, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from explorer.engine.data import Dataset
from explorer.engine.roster import by_key
from explorer.engine.settings import changed_settings
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.repeat import is_attacked, is_trained
from explorer.research.state import link_of

Lines = list[str]


def command_of(run: Run) -> str:
    """Return the command that repeats the run of a link, and prints its numbers."""
    return f"margin-explorer repeat {link_of(run)}"


def python_of(run: Run) -> str:
    """Return Python that repeats the run step by step, and prints its numbers."""
    trains, attacks = is_trained(run), is_attacked(run)
    names, home, lines = {"torch"}, dict[str, set[str]](), _points(run.dataset)
    public = {"preset" if run.dataset.source else "read_link"}
    if trains and run.dataset.n:
        public |= {"TrainConfig", "certify", "sentence", "training"}
        lines += _training(run)
        if run.exact:
            public.add("maximum_margin")
        if run.finish is not None:
            home["explorer.research.runs"] = {"to_the_end"}
    if attacks and run.dataset.n:
        public |= {"Target", "by_key", "control_sets"}
        lines += _attack(run)
        home.setdefault("explorer.research.runs", set()).add("judgement")
        if _grants(run):
            home["explorer.research.runs"].add("granted_target")
        if by_key(run.attack_name).takes_start:
            home["explorer.engine.energy.starts"] = {"attack_start"}
    imports = [f"import {name}" for name in sorted(names) if trains and run.dataset.n]
    imports.append(f"from explorer import {', '.join(sorted(public))}")
    imports += [
        f"from {module} import {', '.join(sorted(of))}" for module, of in sorted(home.items())
    ]
    return "\n".join([*imports, "", *lines])


def notebook_of(run: Run) -> str:
    """Return Python that does again on a page in a notebook what was done on this one."""
    entry, taken = by_key(run.attack_name), run.steps[1]
    settings: Any = run.attack_config or entry.config()
    planned, usual = (entry.step_count(config, 0) for config in (settings, entry.config()))
    beyond = run.exact or run.finish is not None or any(run.mix or ())  # clicks without a call
    beyond = beyond or run.attack_seed is not None or (is_attacked(run) and planned < usual)
    if beyond or usual < planned != taken or not run.dataset.n:
        return f'from explorer import app\n\npage = app("{link_of(run)}")'
    name = "preset" if run.dataset.source else "read_link"
    lines = [f"from explorer import app, {name}", "", *_points(run.dataset)]
    lines.append(f"page = app(data, seed={run.seed})" if run.seed else "page = app(data)")
    if is_trained(run):
        trained = replace(run.train_config, steps=TrainConfig().steps)  # a page goes on and on
        lines.append(f"page.train({_arguments(str(run.steps[0]), trained)})")
    if is_attacked(run):
        config = replace(settings, steps=usual) if usual else settings
        lines.append(f"page.attack({_arguments(f'{run.attack_name!r}, steps={taken}', config)})")
    lines += [f"page.go({run.stage!r})"] * (run.stage not in ("", "draw", "train", "attack"))
    return "\n".join(lines)


def _arguments(first: str, config: Any) -> str:  # noqa: ANN401 - settings of any class
    return ", ".join([first, *filter(None, [differences(config)])])


def _points(data: Dataset) -> Lines:
    source = data.source
    if source is None:
        return [f'data = read_link("{link_of(Run(data, TrainConfig()))}").dataset']
    return [
        f"data = preset({source.preset!r}, n={source.n}, noise={source.noise}, seed={source.seed})"
    ]


def _training(run: Run) -> Lines:
    last = run.steps[0]
    descent = last if run.finish is None else min(run.finish, last)
    net = ", maximum_margin(data.x, data.y).net" if run.exact else ""
    lines = [
        f"config = TrainConfig({differences(run.train_config)})",
        f"state = training.init(data, config, torch.Generator().manual_seed({run.seed}){net})",
    ]
    if is_attacked(run) and by_key(run.attack_name).needs.unseparated:
        lines.append("first = state")
    if descent:
        lines.append(f"state = training.advance(data, state, config, {descent})")
    if run.finish is not None and last > descent:
        lines += [
            "for state, _ in to_the_end(data, state, config):",
            f"    if state.t >= {last}:",
            "        break",
        ]
    lines.append('print(f"step {state.t}: smallest margin {state.q_min:.6g}")')
    if not run.train_config.all_biases:
        return [*lines, "known = certify(state.net, data.x, data.y)", "print(sentence(known))"]
    return [*lines, "known = None  # biases beyond the first layer: no theorem speaks of it"]


def _attack(run: Run) -> Lines:
    entry = by_key(run.attack_name)
    config = run.attack_config or entry.config()
    seed = run.seed if run.attack_seed is None else run.attack_seed
    labels = "" if entry.own is None else ", data.y"
    seen = ", before=training.earlier_weights(first, state)" if entry.needs.unseparated else ""
    proof = "known" if entry.own is None else "None"  # it has weights of its own training
    start = ["start = None"]
    if entry.takes_start:
        size, mix = "config.m, config.sigma_x", run.mix or (0.0, 0.0)
        start = [f"start = attack_start(data, controls.sets[0], {size}, {seed}, {mix}{labels})"]
    return [
        "",
        f"target = Target.of(state.net, state.q_min{seen})",
        f"attack = by_key({run.attack_name!r})",
        f"config = attack.config({differences(config)})",
        "controls = control_sets(data)",
        *start,
        *([f"target = granted_target(target, data, config, {seed})"] * _grants(run)),
        f"aimed = attack.target_for(target, data.x, data.y, config, {seed})",
        f"found = attack.init(aimed, config, torch.Generator().manual_seed({seed}), start)",
        *([f"found = attack.advance(aimed, found, config, {run.steps[1]})"] * bool(run.steps[1])),
        "claims = attack.report(target, found, config)",
        f"made = judgement(claims, data, controls, {proof}, more=True)",
        "print(sentence(made.verdict))",
    ]


def _grants(run: Run) -> bool:
    """Return whether the attack is granted something of the points."""
    return "knows" in changed_settings(run.attack_config) if run.attack_config else False


def differences(config: Any) -> str:  # noqa: ANN401 - settings of any class
    """Return the settings that are not the defaults, as Python writes them."""
    return ", ".join(f"{name}={value!r}" for name, value in changed_settings(config).items())
