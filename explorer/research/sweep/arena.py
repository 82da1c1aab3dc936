"""Several attacks on the same networks: recall, precision, control, verdict, intervals.

Each seed gives one network; all attacks run on it, with the same seed of the candidates. A line
pools the seeds of one attack: a share is a sum over the seeds by another, with the intervals of
`confidence`. The p-value is that of `scoring`, for the sum over the seeds against the sums of the
controls; the sentence adjusts it for the choice of the best attack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.confidence import Share, share
from explorer.engine.controls import Origin
from explorer.engine.known import knowledge_of
from explorer.engine.roster import ROSTER, AnyAttack, AttackState, by_key
from explorer.engine.scoring import LEVEL as CHANCE
from explorer.engine.scoring import RADII, Kind, adjusted_p_values, kind_of
from explorer.research.records import plain
from explorer.research.runs import RADIUS, RunFailed, Watch, no_watch
from explorer.research.sweep.experiment import Experiment, Refused, Victim, run_attack
from explorer.research.words import verdicts

AT = RADII.index(RADIUS)
TICKED = 4  # at first: of those that can be run, the first of the list; arbitrary

Row = Mapping[str, Any]
Counts = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ArenaLine:
    """One attack over its runs; the tuples are over `radii`.

    Attributes:
        key: of the attack.
        title: its name on screen.
        runs: number of runs that finished.
        message: why others failed; "" if none did.
        n: points, summed over the runs.
        found: points found at each radius.
        claims: over the runs.
        recall: share of all points found.
        reach: share found of the points on the margin or with a multiplier.
        precision: share of the claims that found a point.
        control: share of the points of control sets that the same claims find by chance.
        distance: median over points and then runs, to the nearest claim of the same label.
        residual: mean share of |theta| the claims leave unexplained; nan where not homogeneous.
        seconds: mean of a run.
        cpu: mean CPU seconds of a run, of its own thread; nan where they were not counted.
        kind: the verdict's word.
        p_value: chance of as many matches on the controls; nan where it cannot be known.
        chance: points of each control met within the radius, over the runs; of controls made in
            several ways, those that gave `p_value`.
        determined: certified points, over the runs; -1 where not computed.
        sure: how many of those were found within `RADIUS`.
        p_adjusted: p of the best of all attacks that ran; see `scoring.adjusted_p_values`.
        origin: how the controls were made.
        ways: `chance` for each way in which controls were made.
        radii: distances within which a claim counts.
        at: which of them is the radius of verdict, p-values and merit.
        middle: number of the run that found a middling number of points, among those that finished.
        once: points that this run found within the radius, and its claims.
    """

    key: str
    title: str
    runs: int
    message: str
    n: int = 0
    found: tuple[int, ...] = ()
    claims: int = 0
    recall: tuple[Share, ...] = ()
    reach: tuple[Share, ...] = ()
    precision: tuple[Share, ...] = ()
    control: tuple[float, ...] = ()
    distance: float = float("nan")
    residual: float = float("nan")
    seconds: float = float("nan")
    kind: Kind = Kind.CANNOT_KNOW
    p_value: float = float("nan")
    chance: tuple[int, ...] = ()
    determined: int = -1
    sure: int = 0
    p_adjusted: float = float("nan")
    origin: Origin = Origin.GIVEN
    cpu: float = float("nan")
    ways: Mapping[Origin, tuple[int, ...]] = field(default_factory=dict)
    radii: tuple[float, ...] = RADII
    at: int = AT
    middle: int = 0
    once: tuple[int, int] = (0, 0)

    @property
    def radius(self) -> float:
        """Return the radius of verdict, p-values and merit."""
        return self.radii[self.at]

    @property
    def hits(self) -> int:
        """Return the points found within it."""
        return self.found[self.at] if self.found else 0

    @property
    def control_words(self) -> str:
        """Return the control sets in words, such as "99 held-out sets"; "" without a run."""
        return verdicts.sets(self.origin, len(self.chance)) if self.runs else ""

    @property
    def word(self) -> str:
        """Return the verdict in small letters; "chance not ruled out" takes precedence."""
        if self.p_value > CHANCE:
            return "chance not ruled out"
        return self.kind.value

    @property
    def merit(self) -> float:
        """Return the harmonic mean of reach and precision at the radius; 0 without claims."""
        if not self.runs or not self.claims:
            return 0.0
        r, p = self.reach[self.at].value, self.precision[self.at].value
        return 2 * r * p / (r + p) if r + p > 0 else 0.0


def arena_rows(
    base: Experiment, attacks: Sequence[str], seeds: Iterable[int],
    granted: Mapping[str, Any] | None = None,
) -> list[Experiment]:  # fmt: skip
    """Return the rows of an arena for `sweep`, attacks varying fastest; else ValueError.

    `granted`: settings that say what attackers know of the points, where an attack has such.
    """
    able = {key for key in attacks if knowledge_of(by_key(key).config()) is not None}
    with_prior = replace(base, attack_config={**base.attack_config, **(granted or {})})
    return [
        replace(with_prior if key in able else base, seed=seed, attack=key)
        for seed in seeds for key in attacks
    ]  # fmt: skip


def attack_row(
    victim: Victim, key: str, seed: int, given: Mapping[str, Any] | None = None,
    watch: Watch[AttackState] = no_watch, radii: Sequence[float] = RADII,
) -> dict[str, Any]:  # fmt: skip
    """Run one attack on a given network. Return a row like those of a sweep, also for a failure.

    `radii`: where its claims are counted; `RADIUS` is one of them.
    """
    row: dict[str, Any] = {
        "status": "done", "message": "", "trial": {"attack": key, "seed": seed}, "result": {},
        "seconds": {},
    }  # fmt: skip
    begun, worked = perf_counter(), thread_time()
    try:
        row["result"] = {
            **run_attack(victim, key, given or {}, seed, watch, radii=radii),
            "n": victim.truth.n,
        }
    except (RunFailed, ValueError) as why:
        refused = "refused" if isinstance(why, Refused) else "failed"
        return row | {"status": refused, "message": str(why)}
    row["seconds"] = {"attack": perf_counter() - begun, "cpu": thread_time() - worked}
    made: dict[str, Any] = plain(row)
    return made


def refusals(target: Target | None) -> dict[str, str]:
    """Return why each attack cannot be compared on these weights; "" for those that can."""
    return {key: _refusal(entry, target) for key, entry in ROSTER.items()}


def _refusal(entry: AnyAttack, target: Target | None) -> str:
    if entry.own is not None:
        return "attacks weights of its own training, not these"
    why = "" if target is None else entry.refusal(target)
    return (why.partition(": ")[2] or why).partition(";")[0]


def first_ticked(refused: Mapping[str, str]) -> list[str]:
    """Return which attacks are compared where nobody chose: the first that can be run."""
    return [key for key, why in refused.items() if not why][:TICKED]


def claims_of(rows: Iterable[Row], line: ArenaLine, d: int) -> Report | None:
    """Return the claims of the middle run of an attack; None of no run.

    Args:
        rows: those of `attack_row`.
        line: of the attack.
        d: coordinates of a point.
    """
    runs = [r["result"] for r in rows if r["trial"]["attack"] == line.key and r["result"]]
    if not runs:
        return None
    run = runs[line.middle]
    x, y, lam = (torch.tensor(run[name], dtype=torch.float64) for name in ("x", "y", "lam"))
    return Report(x.reshape(-1, d), y, lam)


def lines_of(rows: Iterable[Row], radius: float = RADIUS) -> list[ArenaLine]:
    """Return one line per attack, in the order of the rows.

    Verdict, p-values and merit are those within `radius`, one of the radii of the rows.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["trial"]["attack"], []).append(row)
    counts = [len(row["result"]["chance"]) for group in groups.values() for row in group
              if row["status"] == "done"]  # fmt: skip
    fewest = min(counts, default=0)  # rows of older files have ten
    lines = [_line(key, group, fewest, radius) for key, group in groups.items()]
    known = [line for line in lines if line.p_value == line.p_value]
    ps: dict[str, float] = {}
    for way in set[Origin]().union(*(line.ways for line in known)):
        some = [line for line in known if way in line.ways]
        p = adjusted_p_values([line.hits for line in some], [line.ways[way] for line in some])
        for line, value in zip(some, p, strict=True):
            ps[line.key] = max(value, ps.get(line.key, 0.0))  # as `judge`: the largest holds
    return [replace(line, p_adjusted=ps.get(line.key, float("nan"))) for line in lines]


def _ways(results: list[Row], controls: int) -> dict[Origin, Counts]:
    """Return what claims meet on so many controls of each way, over the runs. Each (K, radii)."""
    common = set.intersection(*(set(result.get("beside", {})) for result in results))
    ways = {_origin(results): [result["chance"] for result in results]}
    ways |= {Origin(way): [result["beside"][way] for result in results] for way in sorted(common)}
    return {way: np.array([c[:controls] for c in counts]).sum(0) for way, counts in ways.items()}


def _p_value(chance: Counts, found: int) -> float:
    return (1 + int((chance >= found).sum())) / (1 + len(chance))


def _line(key: str, rows: list[Row], controls: int, radius: float) -> ArenaLine:
    good = [row for row in rows if row["status"] == "done"]
    message = "; ".join(dict.fromkeys(r["message"] for r in rows if r["status"] != "done"))
    title = by_key(key).title
    if not good:
        return ArenaLine(key, title, 0, message)
    results = [row["result"] for row in good]

    def of(name: str) -> np.ndarray[Any, Any]:
        return np.array([result[name] for result in results])

    n, claims, found, reach = of("n"), of("claims"), of("found"), of("found_reach")
    ways = _ways(results, controls)
    radii = tuple(results[0].get("radii", RADII))
    at, every = radii.index(radius), range(len(radii))
    total, p_value = int(found[:, at].sum()), float("nan")
    kind = Kind.CANNOT_KNOW
    hardest = max(ways, key=lambda way: _p_value(ways[way][:, at], total))
    chance = ways[hardest]
    if any(result["p_value"] is not None for result in results):
        p_value = _p_value(chance[:, at], total)
        within = int(reach[:, at].sum()), int(of("reach").sum())
        kind = kind_of(total, int(n.sum()), within, int(claims.sum()), p_value, len(chance))
    distances = [r["distance"] for r in results if r["distance"] is not None]
    residuals = [r["residual"] for r in results if r["residual"] is not None]
    middle = _middle(found[:, at].tolist())
    return ArenaLine(
        key, title, len(good), message, int(n.sum()), tuple(int(v) for v in found.sum(0)),
        int(claims.sum()),
        tuple(share(found[:, i], n) for i in every),
        tuple(share(reach[:, i], of("reach")) for i in every),
        tuple(share(found[:, i], claims) for i in every),
        tuple(float(v) for v in chance.mean(0) / max(int(n.sum()), 1)),
        float(np.median(distances)) if distances else float("nan"),
        float(np.mean(residuals)) if residuals else float("nan"),
        float(np.mean([row["seconds"]["attack"] for row in good])), kind, p_value,
        tuple(int(v) for v in chance[:, at]), *_determined_counts(results), origin=hardest,
        cpu=float(np.mean([row["seconds"].get("cpu", np.nan) for row in good])),
        ways={way: tuple(int(v) for v in counts[:, at]) for way, counts in ways.items()},
        radii=radii, at=at, middle=middle, once=(int(found[middle, at]), int(claims[middle])),
    )  # fmt: skip


def _middle(found: Sequence[int]) -> int:
    """Return the first run whose count is the middle one, of two such the lower."""
    return found.index(sorted(found)[(len(found) - 1) // 2])


def _origin(results: list[Row]) -> Origin:
    """Return how the controls of all runs were made; rows of older files do not say."""
    told = {Origin(r.get("controls", Origin.GIVEN.value)) for r in results}
    return told.pop() if len(told) == 1 else Origin.GIVEN


def _determined_counts(results: list[Row]) -> tuple[int, int]:
    """Return how many points are certified, and how many of those found; -1, 0 if unknown."""
    told = [r for r in results if r.get("determined") is not None]
    if not told:
        return -1, 0
    pairs = [p for r in told for p in zip(r["determined"], r["matched"], strict=True)]
    return sum(fixed for fixed, _ in pairs), sum(fixed and found for fixed, found in pairs)


def best(lines: Sequence[ArenaLine]) -> ArenaLine | None:
    """Return the attack of largest merit, of those that beat chance if any; None if none hit."""
    hit = [line for line in lines if line.merit > 0]
    return max(hit, key=lambda line: (line.p_adjusted <= CHANCE, line.merit), default=None)


def table(lines: Iterable[ArenaLine]) -> list[dict[str, Any]]:
    """Return lines as flat rows, for a CSV."""
    found = []
    for line in lines:
        row: dict[str, Any] = {"attack": line.key, "runs": line.runs, "n": line.n,
                               "claims": line.claims}  # fmt: skip
        for i, radius in enumerate(line.radii):
            for name in ("recall", "reach", "precision"):
                shares = getattr(line, name)
                for end in ("value", "low", "high"):
                    column = f"{name}@{radius:g}" + ("" if end == "value" else f".{end}")
                    row[column] = getattr(shares[i], end) if shares else None
            row[f"control@{radius:g}"] = line.control[i] if line.control else None
        row |= {"distance": line.distance, "residual": line.residual, "seconds": line.seconds,
                "verdict": line.word if line.runs else "", "p_value": line.p_value,
                "p_adjusted": line.p_adjusted, "controls": line.control_words,
                "determined": line.determined if line.determined >= 0 else None, "sure": line.sure,
                "message": line.message}  # fmt: skip
        found.append(row)
    return found
