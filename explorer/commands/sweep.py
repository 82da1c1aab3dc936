"""The verbs `sweep` and `arena`: many runs at once, and a comparison of attacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from explorer.commands import options
from explorer.commands.base import print_table, show
from explorer.commands.options import (
    LAYERS,
    WIDTHS,
    Data,
    Device,
    Json,
    OptionGroup,
    Seeds,
    expand_groups,
    numbers_of,
    option,
    setting_option,
)
from explorer.commands.outputs import check_files, check_folder
from explorer.commands.rows import check_any_done, collect_rows
from explorer.commands.tables import table_of
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import RADII
from explorer.engine.settings import setting_of, value_of
from explorer.research.devices import check_device
from explorer.research.pictures.figures import arena_figure, other_figure, sweep_picture
from explorer.research.records import plain
from explorer.research.report import Summary, lines
from explorer.research.sweep import (
    Experiment,
    experiments,
    key_of,
    processes,
    seeds_of,
    sweep,
    threads,
    write_csv,
)
from explorer.research.sweep import arena as arenas
from explorer.research.sweep.executors import Make, dask_client
from explorer.research.words import arena as arena_words

IN_FLIGHT = 2  # rows submitted ahead per worker: no worker waits, and few rows are lost


Where = StrEnum("Where", ["processes", "threads", "dask"])  # rows run
Axis = Annotated[
    list[str] | None,
    option("--set", "FIELD=VALUE or FIELD=[VALUE, ...] of the rows; see `settings`."),
]


@dataclass(frozen=True)
class Workers(OptionGroup):
    """Where rows run, and which again."""

    workers: Annotated[int, option("--workers", "How many at once.", min=1)] = 2
    where: Annotated[Where, option("--executor", "Processes, threads, or a Dask cluster.")] = (
        Where.processes
    )
    scheduler: Annotated[str | None, option("--scheduler", "Address of a Dask scheduler.")] = None
    again: Annotated[bool, option("--again", "Run rows anew whose last run failed.")] = False

    @contextmanager
    def executor(self) -> Iterator[Make]:
        """Yield what makes executors. ValueError where the options contradict."""
        if self.scheduler is not None and self.where is not Where.dask:
            raise ValueError(f"--scheduler belongs to --executor dask; got {self.where.value}")
        if self.where is not Where.dask:
            many = processes if self.where is Where.processes else threads
            yield many(self.workers)
            return
        client = dask_client(self.scheduler, self.workers)
        try:
            yield client.get_executor
        finally:
            client.close()

    def collect(
        self, rows: list[Experiment], path: Path, fresh: bool = False
    ) -> list[dict[str, Any]]:
        """Return all rows, run and kept in a file; `fresh` begins the file anew."""
        ahead = IN_FLIGHT * self.workers
        with self.executor() as make:
            running = sweep(rows, make, path=path, in_flight=ahead, again=self.again, fresh=fresh)
            return collect_rows(running, len(rows), "rows", path)


POOL, CIRCLE = Workers(), options.PointSource()


@expand_groups
def sweep_rows(
    file: Annotated[Path | None, option("--table", "TOML: fields of rows; lists are axes.")] = None,
    settings: Axis = None, data: Data = None, seeds: options.AnySeeds = None,
    device: options.AnyWhere = None, pool: Workers = POOL,
    out: Annotated[Path | None, option("--out", "Rows, one line of JSON each; needed.")] = None,
    table: Annotated[Path | None, option("--csv", "The same as one table.")] = None,
    picture: Annotated[Path | None, option("--picture", "What was found, as a picture.")] = None,
    resume: Annotated[bool, option("--resume/--fresh", "Go on, or begin the file anew.")] = True,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Run every combination of a table of settings, and keep each row as it is finished."""
    check_device((device or Device.cpu).value)
    said = table_of(file, settings or [])
    said |= {} if data is None else {"data": str(data)}
    said |= {} if seeds is None else {"seed": seeds_of(seeds)}
    given = list(experiments(said | ({} if device is None else {"device": device.value})))
    rows = list({key_of(row): row for row in given}.values())
    if len(rows) < len(given):
        words = "rows of the table are equal to others, and run once"
        print(f"margin-explorer: {len(given) - len(rows)} {words}", file=sys.stderr)
    if out is None:
        raise ValueError(
            "a sweep keeps each row as it ends, in a file that it can go on from. Name the file: "
            "--out rows.jsonl."
        )
    check_files(out, table, picture, make=True)
    seen = pool.collect(rows, out, fresh=not resume)
    if table is not None:
        write_csv(table, seen)
    if picture is not None and any(row["status"] == "done" for row in seen):
        sweep_picture(picture, seen)
    count = {s: sum(r["status"] == s for r in seen) for s in ("done", "refused", "failed")}
    messages = {r["message"] for r in seen if r["message"]}
    told = [("message", text) for text in sorted(messages)]
    found = lines({**count, "rows": out})
    found += Summary(told, {"csv": table, "messages": sorted(messages)})
    show(as_json, "Sweep", found)
    check_any_done(seen, "rows")


@expand_groups
def arena(
    points: options.PointSource = CIRCLE,
    attacks: Annotated[str, option("--attacks", f"Of: {', '.join(ROSTER)}; or all.")] = "all",
    seeds: Seeds = "0-4",
    widths: Annotated[str, setting_option("--widths", Experiment, "widths", LAYERS)] = WIDTHS,
    steps: Annotated[int, setting_option("--steps", Experiment, "steps", min=0)] = Experiment.steps,
    method: Annotated[str, setting_option("--method", Experiment, "method")] = Experiment.method,
    knows: Annotated[str, setting_option("--knows", KKTConfig, "knows")] = KKTConfig.knows,
    curve: Annotated[str, setting_option("--curve", KKTConfig, "curve")] = "",
    starts: options.Starts = 1, device: options.Where = Device.cpu, pool: Workers = POOL,
    determine: Annotated[bool, option("--determined/--fast", "Say what the weights determine.")]
    = True,
    out: Annotated[Path, option("--out", "Folder of rows, table and figure.")] = Path("arena"),
    as_json: Json = False,
) -> None:  # fmt: skip
    """Set attacks side by side on the same networks, with held-out controls and intervals."""
    names = ROSTER if attacks == "all" else (k.strip() for k in attacks.split(","))
    keys = list(dict.fromkeys(names))
    check_device(device.value)
    first = Experiment.of({
        **vars(points), "widths": numbers_of(widths), "steps": steps, "method": method,
        "determine": determine, "device": device.value, "starts": starts,
    })  # fmt: skip
    granted = {"knows": knows} if knows != KKTConfig.knows else {}
    if curve:
        granted["curve"] = value_of(setting_of(KKTConfig, "curve"), curve)
    rows = arenas.arena_rows(first, keys, dict.fromkeys(seeds_of(seeds)), granted)
    check_folder(out)
    seen = pool.collect(rows, out / "rows.jsonl")
    found = arenas.lines_of(sorted(seen, key=lambda row: keys.index(row["trial"]["attack"])))
    write_csv(out / "arena.csv", plain(arenas.table(found)))  # a missing figure is an empty cell
    write_csv(out / "rows.csv", seen)
    text = arena_words.sentence(found)
    arena_figure(out / "arena.png", found, text)
    drawn = ", other.png" if other_figure(out / "other.png", seen) else ""
    if as_json:
        content = {"sentence": text, "attacks": arenas.table(found), "folder": str(out)}
        show(True, "", Summary([], content))
    else:
        told = [row["result"]["other"] for row in seen if row["result"].get("other")]
        if told:
            text += f" Another set, of the first network: {told[0]['sentence']}"
        widths = "-".join(map(str, first.widths))
        _print(found, f"{first.data or first.preset}, {widths} neurons, seed {seeds}")
        print(f"{text}\nWritten to {out}: arena.csv, rows.csv, rows.jsonl, arena.png{drawn}")
    check_any_done(seen, "rows")


def _print(found: list[arenas.ArenaLine], title: str) -> None:
    """Print a row for each attack, then why runs failed."""
    at, radius = arenas.AT, f"{RADII[arenas.AT]:g}"
    heads = ("attack", "runs", *(f"recall\n{r:g}" for r in RADII), f"in reach\n{radius}",
             f"precision\n{radius}", f"control\n{radius}", "distance", "residual", "seconds",
             "verdict")  # fmt: skip
    print_table(title, heads, (
        (
            line.title, str(line.runs), *(str(s) for s in line.recall), str(line.reach[at]),
            str(line.precision[at]), f"{line.control[at]:.2f}", f"{line.distance:.2g}",
            f"{line.residual:.2g}", f"{line.seconds:.2g}", line.word,
        )
        if line.runs else (line.title, "0", *[""] * 9, "did not run")
        for line in found
    ))  # fmt: skip
    for line in found:
        if line.message:
            print(f"{line.title}: {line.message}")


VERBS = {"sweep": sweep_rows, "arena": arena}
