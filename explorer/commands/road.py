"""The verbs from points to a verdict: demo, train, attack, show, serve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from explorer.commands import base, options
from explorer.commands.options import Device, Dtype, option
from explorer.commands.outputs import check_files, set_aside
from explorer.engine import store
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.files import naming
from explorer.engine.roster import DEFAULT, AnyTarget, by_key
from explorer.engine.store import Run, thinned_run
from explorer.research import report, runs
from explorer.research.devices import check_device
from explorer.research.pictures import painting, planes
from explorer.research.report import Summary
from explorer.research.runs import RunFailed
from explorer.research.scenarios import by_name
from explorer.research.starts import attack_starts
from explorer.research.words import verdicts

RUN = "run.safetensors"
ON_CIRCLE, BY_GRADIENT = options.Points(), options.TrainingOptions()


@options.expand_groups
def demo(
    points: options.Points = ON_CIRCLE, training: options.TrainingOptions = BY_GRADIENT,
    train_set: options.TrainSet = None, attack: options.Which = DEFAULT,
    m: options.Candidates = None, attack_steps: options.AttackSteps = None,
    settings: options.Set = None, scenario: options.Row = None,
    out: Annotated[Path, option("--out", "The picture.")] = Path("margin-explorer.png"),
    device: options.Where = Device.cpu, dtype: options.Type = Dtype.float64,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Run the whole road, print a table and write a picture."""
    if scenario is None:
        hit = base.attack_config(attack, settings, m=m, steps=attack_steps)
        run = training.run_on(
            points.draw(), points.seed, train_set, attack_name=attack, attack_config=hit
        )
    else:
        run = by_name(scenario).run
        run = replace(run, train_config=replace(run.train_config, steps=run.steps[0]))
    data = run.dataset
    if data.d in (1, 2):
        check_files(out)
    early = by_key(run.attack_name).needs.unseparated
    trained = options.train(run, device, dtype, separated=not early)
    attacked = runs.attack(
        trained.target, run.attack_config or by_key(run.attack_name).config(), run.seed,
        name=run.attack_name, truth=data, certificate=trained.certificate, watch=base.watch,
        device=device.value,
    )  # fmt: skip
    verdict = verdicts.verdict(attacked.verdict) if attacked.verdict else ""
    if data.d in (1, 2):
        drawn = planes.run_figure(data, trained.net, attacked.claims, verdict)
        painting.save_figure(out, drawn)
    found = report.of_training(trained) + report.of_attack(attacked)
    found += report.line("picture", out if data.d in (1, 2) else None)
    found += report.line("note", _where(device, run.attack_name))
    base.show(as_json, "Margin Explorer", found)


@options.expand_groups
def train(
    points: options.Points = ON_CIRCLE,
    training: options.TrainingOptions = BY_GRADIENT,
    train_set: options.TrainSet = None,
    out: Annotated[Path | None, option("--out", f"The file of the run, in place of {RUN}.")] = None,
    device: options.Where = Device.cpu,
    dtype: options.Type = Dtype.float64,
    as_json: options.Json = False,
) -> None:
    """Train a network and save the run, on one thread or on OMP_NUM_THREADS."""
    run, path = training.run_on(points.draw(), points.seed, train_set), out or Path(RUN)
    check_files(path)
    early = run.train_config.steps > 0  # two snapshots can be attacked before a margin is there
    trained = options.train(run, device, dtype, separated=not early)
    before = None if out else set_aside(path)  # a file that was not named is not replaced
    kept = Run(run.dataset, run.train_config, trained.states, seed=run.seed)
    store.save_run(thinned_run(kept), path)
    found = report.of_training(trained) + report.line("run", path)
    there = [] if before is None else [("the run that was there", str(before))]
    base.show(as_json, "Training", found + Summary(there, {"before": before}))


def attack_file(
    file: Annotated[Path, typer.Argument(help="A saved run, or the state_dict of a ReLU network.")],
    truth: options.Truth = None,
    margin: options.Margin = None,
    before: Annotated[
        Path | None,
        option("--before", "Earlier weights of this network, a run or a state_dict, as a second "
               "snapshot. Left away, the first weights of a saved run are taken."),
    ] = None,
    attack: options.Which = DEFAULT, m: options.Candidates = None, seed: options.Seed = 0,
    starts: options.Starts = 1, steps: options.Length = None,
    settings: options.Set = None, device: options.Where = Device.cpu,
    dtype: options.AttackType = None,
    certified: Annotated[
        bool,
        option("--certified/--no-certified", "Say how certain each claim is, where it can."),
    ] = True,
    out: Annotated[Path | None, option("--out", "Save the run with the attack.")] = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Attack trained weights; without the truth nobody can say which claims hold."""
    check_device(device.value)
    run, net, points = runs.open_run(file, truth)
    if out is not None and (run is None or starts > 1):
        why = "these are weights alone" if run is None else f"{starts} starts are no run"
        raise ValueError(f"--out saves a run with one attack; {why}. Leave it away.")
    config = base.attack_config(attack, settings, m=m, steps=steps)
    check_files(out)
    trained = None if run is None else run.train_config
    net = net.to(dtype=torch.float64)
    first = None if run is None else runs.first_weights(run.train_states)
    if before is not None:
        first = runs.open_run(before)[1].to(dtype=torch.float64)
    target, made, note = runs.aim(net, points, margin, trained, first)
    note = " ".join(filter(None, (note, _where(device, attack))))
    hit: dict[str, Any] = {
        "name": attack, "truth": points, "certificate": made, "device": device.value,
        "dtype": None if dtype is None else getattr(torch, dtype.value),
    }  # fmt: skip
    why = _why_uncertified(target, attack) if certified else ""
    found = Summary([], {"network": report.of_network(net)}) + report.line("note", note)
    found += Summary([("certified points", why)] if why else [])
    sure = certified and not why
    if starts > 1:
        with base.progress_bar("attack") as progress:
            many = attack_starts(
                target, config, range(seed, seed + starts), progress=progress, **hit
            )
        if sure:
            many = replace(many, union=runs.with_certainty(many.union, points))
        found += report.of_starts(many)
    else:
        done = runs.attack(target, config, seed, watch=base.watch, **hit)
        done = runs.with_certainty(done, points) if sure else done
        if run is not None and out is not None:
            saved = replace(
                run, attack_name=attack, attack_config=config, attack_states=done.states
            )
            store.save_run(thinned_run(saved), out)
        found += report.of_attack(done)
    base.show(as_json, f"Attack on {file.name}", found)


def _where(device: Device, attack: str) -> str:
    """Return that an attack stayed on the CPU where a device was asked for, or an empty string."""
    entry = by_key(attack)
    there = device.value == "cpu" or entry.needs.anywhere
    return "" if there else verdicts.on_cpu(entry.title)


def _why_uncertified(target: AnyTarget, attack: str) -> str:
    """Return why the claims of an attack cannot be certified, or an empty string."""
    if by_key(attack).own is not None:
        return "The attack trains weights of its own."
    return obstacle(target)


def show(
    file: Annotated[Path, typer.Argument(help="A saved run, or the state_dict of a ReLU network.")],
    as_json: options.Json = False,
) -> None:
    """Say what a file holds."""
    with naming(file):
        opened = store.open_bytes(store.read_file(file))
    base.show(as_json, file.name, report.of_file(opened))


def serve(
    port: Annotated[int, option("--port", "A free one is taken when it is not.")] = 8866,
    open_browser: Annotated[bool, option("--open/--no-open", "Open the page.")] = True,
    theme: Annotated[str, option("--theme", "light or dark.")] = "light",
    host: Annotated[str, option("--host", "0.0.0.0 serves a class on the network.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        option("--allow-host", "A further name of this server, such as a proxy's."),
    ] = None,
    class_size: Annotated[
        int,
        option("--class", "How many visitors have a place at once; 0: as memory allows.", min=0),
    ] = 0,
    per_address: Annotated[
        int, option("--per-address", "How many places one address may have; 0: all.", min=0)
    ] = 0,
    behind_proxy: Annotated[
        bool, option("--behind-proxy", "Visitors' addresses stand in X-Forwarded-For.")
    ] = False,
    base_path: Annotated[
        str, option("--base-path", "Such as /margin/, where a proxy serves the page there.")
    ] = "/",
) -> None:
    """Open the app in a browser."""
    from explorer.serve import server

    try:
        server.serve(
            port=port, open_browser=open_browser, theme=theme, host=host,
            allow_hosts=tuple(allow_host or ()), class_size=class_size, per_address=per_address,
            behind_proxy=behind_proxy, base_path=base_path,
        )  # fmt: skip
    except server.ServeError as error:
        raise RunFailed(str(error)) from error


VERBS = {"demo": demo, "train": train, "attack": attack_file, "show": show, "serve": serve}
