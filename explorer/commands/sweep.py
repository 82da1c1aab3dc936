"""The verbs `sweep` and `arena`: many runs at once, and attacks side by side."""

from __future__ import annotations

import sys
import tomllib
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from explorer import arena as arenas
from explorer.commands.base import Json, option, show_result
from explorer.commands.outputs import check_files, check_folder
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import RADII
from explorer.figures.arena import arena_figure
from explorer.figures.other import other_figure
from explorer.pools import Make, dask_client
from explorer.sweep import Trial, processes, seeds_of, sweep, threads, trials, write_csv
from explorer.trial import plain

IN_FLIGHT = 2  # rows per worker handed in ahead: none waits for the next, and few are lost


class Where(StrEnum):
    """Where rows run."""

    processes = "processes"
    threads = "threads"
    dask = "dask"


Workers = Annotated[int, option("--workers", "How many at once.", min=1)]
On = Annotated[Where, option("--executor", "Processes, threads, or a Dask cluster.")]
Scheduler = Annotated[str | None, option("--scheduler", "Address of a Dask scheduler.")]
Axis = Annotated[
    list[str] | None, option("--set", "FIELD=VALUE or FIELD=[VALUE, ...] of the rows.")
]
Again = Annotated[bool, option("--again", "Run rows anew whose last run failed.")]


@contextmanager
def executor(where: Where, workers: int, scheduler: str | None) -> Iterator[Make]:
    """What makes executors, and its end. ValueError where the options contradict."""
    if scheduler is not None and where is not Where.dask:
        raise ValueError(f"--scheduler belongs to --executor dask; got {where.value}")
    if where is not Where.dask:
        yield processes(workers) if where is Where.processes else threads(workers)
        return
    client = dask_client(scheduler, workers)
    try:
        yield client.get_executor
    finally:
        client.close()


def run_rows(
    rows: list[Trial], make: Make, workers: int, out: Path, again: bool, fresh: bool = False
) -> list[dict[str, Any]]:
    """All rows, with a bar on stderr; Ctrl-C keeps what is done, and says how to go on."""
    seen: list[dict[str, Any]] = []
    running = sweep(rows, make, path=out, in_flight=IN_FLIGHT * workers, again=again, fresh=fresh)
    try:
        for row in tqdm(running, total=len(rows), desc="rows", file=sys.stderr, disable=None):
            seen.append(row)
    except KeyboardInterrupt:
        running.close()
        print(
            f"stopped: {len(seen)} of {len(rows)} rows are kept in {out}; the same command goes on",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    return seen


def table_of(file: Path | None, settings: Iterable[str]) -> dict[str, Any]:
    """The table of a sweep: that of a TOML file, then FIELD=VALUE over it.

    A field with a point, such as attack_config.m=[50, 100], is a setting within.
    """
    found: dict[str, Any] = {}
    if file is not None:
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{file} is not TOML: {error}") from error
        found = content.get("table", content)
    for pair in settings:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes FIELD=VALUE, such as n=[10, 20]; got {pair!r}")
        try:
            value = literal_eval(text)
        except (ValueError, SyntaxError):
            value = text.split(",") if "," in text else text  # words
        outer, _, inner = name.partition(".")
        if inner:
            found.setdefault(outer, {})[inner] = value
        else:
            found[name] = list(value) if isinstance(value, tuple) else value
    if isinstance(found.get("seed"), str):
        found["seed"] = seeds_of(found["seed"])
    return found


def sweep_rows(
    file: Annotated[Path | None, option("--table", "TOML: fields of rows; lists are axes.")] = None,
    settings: Axis = None, workers: Workers = 2, where: On = Where.processes,
    scheduler: Scheduler = None, again: Again = False,
    out: Annotated[Path, option("--out", "Rows, one line of JSON each; goes on where it ends.")]
    = Path("rows.jsonl"),
    table: Annotated[Path | None, option("--csv", "The same as one table.")] = None,
    resume: Annotated[bool, option("--resume/--fresh", "Go on, or begin the file anew.")] = True,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Run every combination of a table of settings, and keep each row as it is finished."""
    rows = list(trials(table_of(file, settings or [])))
    check_files(out, table, make=True)
    with executor(where, workers, scheduler) as make:
        seen = run_rows(rows, make, workers, out, again, fresh=not resume)
    if table is not None:
        write_csv(table, seen)
    count = {s: sum(r["status"] == s for r in seen) for s in ("done", "refused", "failed")}
    messages = {r["message"] for r in seen if r["message"]}
    content = {**count, "rows": out, "csv": table, "messages": sorted(messages)}
    shown = [(name, str(value)) for name, value in count.items()]
    shown += [("rows", str(out)), *(("message", text) for text in sorted(messages))]
    show_result(as_json, content, "Sweep", shown)


def arena(
    preset: Annotated[str, option("--preset", "Points to draw.")] = "alternating-circle",
    attacks: Annotated[str, option("--attacks", f"Of: {', '.join(ROSTER)}; or all.")] = "all",
    seeds: Annotated[str, option("--seeds", "Such as 0-4 or 0,3,7-9.")] = "0-4",
    n: Annotated[int | None, option("--n", "Number of points.", min=1)] = None,
    noise: Annotated[float | None, option("--noise", "Jitter of the points.", min=0)] = None,
    widths: Annotated[str, option("--widths", "Hidden widths, such as 100 or 100,100.")] = "100",
    steps: Annotated[int, option("--steps", "Training steps.", min=0)] = 20_000,
    method: Annotated[str, option("--method", "gradient, ascent or exact.")] = "gradient",
    workers: Workers = 2, where: On = Where.processes, scheduler: Scheduler = None,
    again: Again = False,
    determine: Annotated[bool, option("--determined/--fast", "Say what the weights determine.")]
    = True,
    out: Annotated[Path, option("--out", "Folder of rows, table and figure.")] = Path("arena"),
    as_json: Json = False,
) -> None:  # fmt: skip
    """Set attacks side by side on the same networks, with held-out controls and intervals."""
    keys = list(ROSTER) if attacks == "all" else [k.strip() for k in attacks.split(",")]
    sizes = tuple(int(w) for w in widths.split(",") if w.strip().isdigit())
    if not sizes:
        raise ValueError(f"--widths takes numbers such as 100,100; got {widths!r}")
    base = Trial(
        preset=preset, n=n, noise=noise, widths=sizes, steps=steps, method=method,
        determine=determine,
    )  # fmt: skip
    rows = arenas.arena_rows(base, keys, seeds_of(seeds))
    check_folder(out)
    with executor(where, workers, scheduler) as make:
        seen = run_rows(rows, make, workers, out / "rows.jsonl", again)
    lines = arenas.lines_of(sorted(seen, key=lambda row: keys.index(row["trial"]["attack"])))
    write_csv(out / "arena.csv", arenas.table(lines))
    write_csv(out / "rows.csv", seen)
    text = arenas.sentence(lines)
    arena_figure(out / "arena.png", lines, text)
    drawn = ", other.png" if other_figure(out / "other.png", seen) else ""
    if as_json:
        content = {"sentence": text, "attacks": arenas.table(lines), "folder": out}
        show_result(True, plain({**content, "folder": str(out)}), "", [])
        return
    told = [row["result"]["other"] for row in seen if row["result"].get("other")]
    if told:
        text += f" Another set, of the first network: {told[0]['sentence']}"
    _print(lines, text, f"{preset}, {base.widths} neurons, seeds {seeds}")
    print(f"Written to {out}: arena.csv, rows.csv, rows.jsonl, arena.png{drawn}")


def _print(lines: list[arenas.Line], text: str, title: str) -> None:
    at = arenas.AT
    shown = Table(title=title)
    for name in (
        "attack", "runs", *(f"recall\n{r:g}" for r in RADII), f"in reach\n{RADII[at]:g}",
        f"precision\n{RADII[at]:g}", f"control\n{RADII[at]:g}", "distance", "residual", "seconds",
        "verdict",
    ):  # fmt: skip
        shown.add_column(name)
    for line in lines:
        if not line.runs:
            shown.add_row(line.title, "0", *[""] * 9, "did not run")
            continue
        shown.add_row(
            line.title, str(line.runs), *(str(s) for s in line.recall), str(line.reach[at]),
            str(line.precision[at]), f"{line.control[at]:.2f}", f"{line.distance:.2g}",
            f"{line.residual:.2g}", f"{line.seconds:.2g}",
            line.word,
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 180).print(shown)
    for line in lines:
        if line.message:
            print(f"{line.title}: {line.message}")
    print(text)


VERBS = {"sweep": sweep_rows, "arena": arena}
