"""The command line: the same road without a page. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 the run failed (diverged, died, or did not separate the points), 2 a wrong
option or an unusable file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

try:
    import typer
    from rich.console import Console
    from rich.table import Table
    from tqdm import tqdm
except ImportError as missing:  # the engine is installed without its command
    sys.exit(
        f"margin-explorer needs its command line ({missing}): pip install margin-explorer[cli]"
    )

import torch

from explorer import __version__, headless, report
from explorer.engine import store
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import PRESETS, Dataset, preset, read_csv
from explorer.engine.store import Run, thinned
from explorer.engine.training import TrainConfig
from explorer.headless import RunFailed, State, Trained
from explorer.scenarios import SCENARIOS, by_name

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Train a ReLU network to its maximum margin, then attack its weights.",
)  # fmt: skip
P = ParamSpec("P")


class Device(StrEnum):
    """Where to train."""

    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class Dtype(StrEnum):
    """Floating type of the training."""

    float64 = "float64"
    float32 = "float32"


class Method(StrEnum):
    """How to reach the margin."""

    gradient = "gradient"
    ascent = "ascent"
    exact = "exact"


def _option(name: str, text: str, **more: Any) -> Any:  # noqa: ANN401
    return typer.Option(name, help=text, **more)


Preset = Annotated[str, _option("--preset", f"Points to draw: {', '.join(PRESETS)}.")]
Count = Annotated[int | None, _option("--n", "Number of points.", min=1)]
Noise = Annotated[float | None, _option("--noise", "Jitter of the points.", min=0)]
Seed = Annotated[int, _option("--seed", "Of the points, the weights and the candidates.", min=0)]
Data = Annotated[Path | None, _option("--data", "CSV with the header x1,x2,y instead of a preset.")]
Widths = Annotated[str, _option("--widths", "Hidden widths, such as 100 or 100,100.")]
Steps = Annotated[int, _option("--steps", "Training steps.", min=0)]
How = Annotated[Method, _option("--method", "Gradient descent, ascent, or the exact solution.")]
Where = Annotated[Device, _option("--device", "Where to train; the attack runs on the CPU.")]
Type = Annotated[Dtype, _option("--dtype", "Floating type of the training.")]
Json = Annotated[bool, _option("--json", "Print JSON, and nothing else, on stdout.")]
Candidates = Annotated[int, _option("--m", "Candidates of the attack, an even number.")]
Row = Annotated[str | None, _option("--scenario", f"One of: {', '.join(SCENARIOS)}.")]
Truth = Annotated[Path | None, _option("--truth", "CSV of the points it was trained on.")]
AttackSteps = Annotated[int, _option("--attack-steps", "Steps of the attack.", min=1)]


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Say what is wrong in one line on stderr, never in a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except RunFailed as error:
            _fail(error, 1)
        except (ValueError, OSError, ImportError) as error:
            _fail(error, 2)

    return run


def _fail(error: Exception, code: int) -> None:
    print(f"margin-explorer: {' '.join(str(error).split())}", file=sys.stderr)
    raise typer.Exit(code)


def watch(states: Iterable[State], total: int, label: str) -> Iterable[State]:
    """A progress bar on stderr, where that is a terminal."""
    return tqdm(states, total=total, desc=label, file=sys.stderr, disable=None, leave=False)


def _points(name: str, n: int | None, noise: float | None, seed: int, data: Path | None) -> Dataset:
    points = preset(name, n, noise, seed) if data is None else read_csv(store.read_file(data))
    if not points.n:
        raise ValueError(f"{data} holds no points. Add lines below its header.")
    return points


def _config(widths: str, steps: int, method: Method) -> TrainConfig:
    try:
        sizes = tuple(int(w) for w in widths.split(","))
    except ValueError as error:
        raise ValueError(f"--widths takes numbers such as 100,100; got {widths!r}") from error
    return TrainConfig(
        widths=sizes, steps=steps, method="ascent" if method is Method.ascent else "gradient"
    )


def _train(
    points: Dataset, config: TrainConfig, seed: int, method: Method, device: Device, dtype: Dtype
) -> Trained:
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(device, True):
        raise ValueError(f"this machine has no {device.value}. Take --device cpu.")
    if device is Device.mps and dtype is Dtype.float64:
        raise ValueError("mps has no float64. Add --dtype float32.")
    return headless.train(
        points, config, seed, exact=method is Method.exact, device=device.value,
        dtype=getattr(torch, dtype.value), watch=watch,
    )  # fmt: skip


def _print(as_json: bool, content: dict[str, Any], title: str, rows: list[tuple[str, str]]) -> None:
    if as_json:
        content = {"version": __version__, **content}
        print(json.dumps(report.jsonable(content), indent=1, allow_nan=False))
        return
    table = Table(title=title, show_header=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@app.command()
@guarded
def demo(
    preset: Preset = "alternating-circle", n: Count = None, noise: Noise = None, seed: Seed = 0,
    data: Data = None, widths: Widths = "100", steps: Steps = 20_000, method: How = Method.gradient,
    m: Candidates = KKTConfig.m, attack_steps: AttackSteps = KKTConfig.steps,
    scenario: Row = None,
    out: Annotated[Path, _option("--out", "The picture.")] = Path("margin-explorer.png"),
    device: Where = Device.cpu, dtype: Type = Dtype.float64, as_json: Json = False,
) -> None:  # fmt: skip
    """Run the whole road, print a table and write a picture."""
    if scenario is None:
        points = _points(preset, n, noise, seed, data)
        config, attack_config = _config(widths, steps, method), KKTConfig(m=m, steps=attack_steps)
    else:
        row = by_name(scenario)
        points, seed, attack_config = row.dataset(), row.seed, row.attack
        config = replace(row.train, steps=row.freeze)
    trained = _train(points, config, seed, method, device, dtype)
    target = Target.of(trained.net, trained.certificate.q_min)
    attacked = headless.attack(
        target, attack_config, seed, truth=points, certificate=trained.certificate, watch=watch
    )
    verdict = attacked.verdict.sentence if attacked.verdict else ""
    if points.d in (1, 2):
        report.picture(out, points, trained.net, attacked.claims, verdict)
    content = {
        **report.of_training(points, trained),
        "attack": report.of_attack(attacked),
        "picture": out if points.d in (1, 2) else None,
    }
    rows = [
        *report.training_rows(points, trained),
        *report.attack_rows(attacked),
        ("picture", str(out)),
    ]
    _print(as_json, content, "Margin Explorer", rows)


@app.command()
@guarded
def train(
    preset: Preset = "alternating-circle", n: Count = None, noise: Noise = None, seed: Seed = 0,
    data: Data = None, widths: Widths = "100", steps: Steps = 20_000, method: How = Method.gradient,
    out: Annotated[Path, _option("--out", "The file of the run.")] = Path("run.safetensors"),
    device: Where = Device.cpu, dtype: Type = Dtype.float64, as_json: Json = False,
) -> None:  # fmt: skip
    """Train a network and save the run."""
    points = _points(preset, n, noise, seed, data)
    config = _config(widths, steps, method)
    trained = _train(points, config, seed, method, device, dtype)
    store.save_run(thinned(Run(points, config, trained.states, seed=seed)), out)
    content = {
        **report.of_training(points, trained),
        "run": out,
    }
    rows = [*report.training_rows(points, trained), ("run", str(out))]
    _print(as_json, content, "Training", rows)


@app.command()
@guarded
def attack(
    file: Annotated[Path, typer.Argument(help="A saved run, or the state_dict of a ReLU network.")],
    truth: Truth = None,
    margin: Annotated[float | None, _option("--margin", "Smallest y Phi(x), if known.")] = None,
    m: Candidates = KKTConfig.m, seed: Seed = 0,
    steps: Annotated[int, _option("--steps", "Steps of the attack.", min=1)] = KKTConfig.steps,
    out: Annotated[Path | None, _option("--out", "Save the run with the attack.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Attack trained weights; without the truth, nobody can say which claims are right."""
    opened = store.open_bytes(store.read_file(file))
    run, net = (opened, opened.net) if isinstance(opened, Run) else (None, opened)
    if net is None:
        raise ValueError(f"{file} holds points but no weights. Train first.")
    known = run.dataset if run else None
    points = read_csv(store.read_file(truth)) if truth else known
    if out is not None and run is None:
        raise ValueError("--out saves a run; these are weights alone. Leave it away.")
    config = KKTConfig(m=m, steps=steps)
    target, made, note = headless.aim(net.to(dtype=torch.float64), points, margin)
    done = headless.attack(target, config, seed, truth=points, certificate=made, watch=watch)
    if run is not None and out is not None:
        saved = replace(run, attack_config=config, attack_states=done.states)
        store.save_run(thinned(saved), out)
    content = {"network": report.of_network(net), "note": note, "attack": report.of_attack(done)}
    rows = [("note", note)] if note else []
    _print(as_json, content, f"Attack on {file.name}", [*rows, *report.attack_rows(done)])


@app.command()
@guarded
def show(
    file: Annotated[Path, typer.Argument(help="A saved run, or the state_dict of a ReLU network.")],
    as_json: Json = False,
) -> None:
    """Say what a file holds."""
    content, rows = report.of_file(store.open_bytes(store.read_file(file)))
    _print(as_json, content, file.name, rows)


@app.command()
@guarded
def serve(
    port: Annotated[int, _option("--port", "A free one is taken when it is not.")] = 8866,
    open_browser: Annotated[bool, _option("--open/--no-open", "Open the page.")] = True,
    theme: Annotated[str, _option("--theme", "light or dark.")] = "light",
    preheat: Annotated[int, _option("--preheat", "Kernels that wait ready.", min=0)] = 0,
    host: Annotated[str, _option("--host", "0.0.0.0 serves a class on the network.")] = "127.0.0.1",
) -> None:
    """Open the app in a browser."""
    from explorer import serve as server

    try:
        server.serve(port=port, open_browser=open_browser, theme=theme, preheat=preheat, host=host)
    except server.ServeError as error:
        raise RunFailed(str(error)) from error


@app.callback(invoke_without_command=True)
def version(
    shown: Annotated[bool, _option("--version", "Print the version and stop.")] = False,
) -> None:
    """Train a ReLU network to its maximum margin, then attack its weights."""
    if shown:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """The command `margin-explorer`."""
    app()


if __name__ == "__main__":
    main()
