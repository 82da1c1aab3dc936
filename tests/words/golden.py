"""Sentences from numbers given by hand, by name, beside the file that keeps them.

`python -m tests.words.golden` writes the file anew. Nothing here is trained or solved, so that no
last bit can turn a digit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks import certified, hinge, pooled, univariate
from explorer.engine.attacks.certified import CertifiedConfig, CertifiedState
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.hinge import HingeConfig, HingeState
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.pooled import PooledConfig, PooledState
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState
from explorer.engine.attacks.univariate import panel as univariate_panel
from explorer.engine.attacks.univariate.config import EXACT, UnivariateConfig
from explorer.engine.attacks.univariate.intervals import Group
from explorer.engine.certificate import Certificate, Light
from explorer.engine.confidence import Share
from explorer.engine.controls import Controls, Origin, control_sets
from explorer.engine.data import Dataset, preset
from explorer.engine.energy.maps import Split
from explorer.engine.energy.points import Archetype, Energies
from explorer.engine.energy.questions import Picture, RidgeSummary, StartsSummary
from explorer.engine.exact import Exact
from explorer.engine.exact.finish import Finished
from explorer.engine.explanations.certainty import Certainty, RadiusMap
from explorer.engine.explanations.masses import Farthest
from explorer.engine.explanations.needed import Needed
from explorer.engine.explanations.others import OtherSet
from explorer.engine.explanations.splitting import Explanation, Merging
from explorer.engine.images import ImageVerdict
from explorer.engine.membership.law import MemberRule
from explorer.engine.network import Network
from explorer.engine.ranks import RankVerdict
from explorer.engine.scoring import Kind, Unknowable, Verdict, judge, score
from explorer.engine.status import Status
from explorer.page.apps import membership_words as page_membership
from explorer.page.apps.membership_scene import Outcome
from explorer.page.frame import (
    Aim,
    Attacking,
    Certain,
    Frame,
    Handle,
    Passed,
    PointMap,
    Proof,
    Shown,
    Training,
)
from explorer.page.history import History
from explorer.page.keeping import words as keeping
from explorer.page.sharing import words as hall
from explorer.page.stages.attack import found_words
from explorer.page.stages.attack.own import rules_html, with_marks
from explorer.page.stages.explain import words as page_explain
from explorer.page.stages.landscape import census_words as page_census
from explorer.page.stages.landscape import energy_words as page_energy
from explorer.page.stages.landscape import words as page_starts
from explorer.page.words import failures, glossary
from explorer.page.words.headline import headline
from explorer.research.audit.inputs import Coordinates
from explorer.research.audit.result import Audit, AuditAttack
from explorer.research.census import Census, CensusConfig
from explorer.research.census.basins import Basin, Conditions, Unseen
from explorer.research.determined import Determination
from explorer.research.grid import Grid, maps
from explorer.research.grid.landscape import Arrivals
from explorer.research.hall import finger_radius, score_hall
from explorer.research.pictures.axes import Axes
from explorer.research.sweep import arena
from explorer.research.tuning import Trial
from explorer.research.words import arena as arena_words
from explorer.research.words import audit as audit_words
from explorer.research.words import explanations, membership, sentence, verdicts, weights
from explorer.research.words import grid as grid_words
from explorer.research.words import tuning as tuning_words

KEPT = Path(__file__).with_name("golden.json")
TRAINED = UnivariateConfig().trained_tolerances

Named = Iterator[tuple[str, str]]


def tensor(*values: float) -> Tensor:
    """The values (k,), in float64."""
    return torch.tensor(values, dtype=torch.float64)


NET = Network((torch.ones(2, 2), torch.ones(1, 2)), (torch.ones(2), None))
DEEP = Network((torch.ones(2, 2), torch.ones(2, 2), torch.ones(1, 2)), (torch.ones(2), None, None))
SEVERAL = Network((torch.ones(2, 2), torch.ones(3, 2)), (torch.ones(2), None))
ON_A_LINE = Network((torch.ones(2, 1), torch.ones(3, 2)), (torch.ones(2), None))  # likewise
BIASED = Network((torch.ones(2, 2), torch.ones(1, 2)), (torch.ones(2), torch.ones(1)))
CERTIFICATE = Certificate(
    q=tensor(1, 1, 2, 3), q_min=1.0, on_margin=tensor(1, 1, 0, 0) > 0, lam=tensor(2, 1, 0.5, 0),
    residual_strict=0.3, residual=0.0123, tau=0.01, n_kinks=2, slackness=0.0002,
    primal_violation=0.0, norm_identity=0.0, balance=0.0, gamma_bar=0.1,
    light=Light.NEAR,
)  # fmt: skip
EXACTLY = Exact(NET, tensor(1), objective=5.0, dual=5.0, violation=0.0, polished=True)
FINISHED = Finished(NET, tensor(1), objective=5.0, bound=5.0, cells=230, rounds=3)
VERDICT = Verdict(
    kind=Kind.FOUND, p_value=0.01, n=20, claims=24, found=12, radius=0.03, chance=0.234,
    origin=Origin.HELD_OUT, controls=99,
)  # fmt: skip
IMAGES = ImageVerdict(
    kind=Kind.FOUND, p_value=0.0002, n=10, claims=0, found=6, of_controls=0.125,
    origin=Origin.HELD_OUT, controls=19, unseen=190, most=3, which=torch.arange(10) < 6,
)  # fmt: skip
ONES = torch.ones(7)
OTHERS = Explanation(torch.zeros(7, 2), ONES, ONES, (), torch.arange(7), ONES[:, None])
PAIR = OTHERS.take(torch.arange(7) < 2)
FARTHEST = OtherSet(OTHERS, 0.52, 0.531, 3e-7, 1e-8, 2.0)
NONE_FAR = replace(FARTHEST, distance=0.0123, at_most=0.0131)
CERTAIN = Certainty(tensor(0.45, 0.1, 0.0), 0.03, 0.01, 0.05, 0.07, 0.15, 2.5, 1.01)
OVER_ALL = Determination(
    CERTAIN, tensor(1, 0, 0, 0), tensor(1, 0, 0, 0) > 0, 0.0712, 0.04, 1.5,
    Farthest(0.01, 0.0123, 0.07, 0.0712, torch.zeros(2, 2), tensor(1, 1), tensor(1, 1)),
)  # fmt: skip
SEEN = Energies(np.array([0.001, *[0.5] * 999]), 0.001, 0.5, 0.0328)
RISING = np.full((3, 3), 0.5)
FLAT = np.where(np.arange(3) < 2, 0.0, RISING)
PICTURE = Picture(
    "point", np.array([[0.1, 0.2], [0.3, 0.4]]), (-2, 2, -2, 2), ("x₁", "x₂"), 0.1, 0.5, SEEN
)


def enums() -> Named:
    """Every member of the enums that have words."""
    kinds: tuple[type[Enum], ...] = (Light, Status, Kind, Archetype)
    for kind in kinds:
        for one in kind:
            yield f"{kind.__name__} {one.name}", sentence(one)
    for origin in Origin:
        for count in (1, 99):
            yield f"Origin {origin.name} {count}", verdicts.sets(origin, count)


def of_weights() -> Named:
    """Certificates, exact solutions, and what had to be assumed."""
    yield "certificate", sentence(CERTIFICATE)
    yield "certificate, at the edge", sentence(replace(CERTIFICATE, at_edge=True))
    yield (
        "certificate, exact",
        sentence(replace(CERTIFICATE, light=Light.EXACT, residual=3e-14, slackness=0.0, tau=1e-6)),
    )
    yield (
        "certificate, sharp residual asked",
        sentence(replace(CERTIFICATE, residual=2e-11, residual_exact=0.0715)),
    )
    wrong = replace(CERTIFICATE, light=Light.NOT_SEPARATED, q=tensor(1, -1, -2, 0))
    yield "certificate, not separated", sentence(wrong)
    yield "certificate, no points", sentence(replace(wrong, q=tensor()))
    yield "exact, polished", sentence(EXACTLY)
    yield "exact, rough", sentence(replace(EXACTLY, dual=4.987, polished=False))
    yield "finished, proved", sentence(FINISHED)
    yield "finished, rough", sentence(replace(FINISHED, bound=4.987))
    yield "exact, rough but no shorter", sentence(replace(EXACTLY, polished=False))
    for unit in (128.0, 2.0**-7):
        yield f"divided {unit:g}", weights.unit_note(unit)
    yield "note", weights.note(replace(NET, assumed_relu=True))
    yield "caveat", weights.assumptions(Target(BIASED), 1.0, None)


def of_verdicts() -> Named:
    """Verdicts on points and on images."""
    yield "verdict", sentence(VERDICT)
    for many in (0, 1, 7):
        yield f"verdict, {many} certified", sentence(replace(VERDICT, certified=many))
    yield "verdict, none found, none certified", sentence(replace(VERDICT, found=0, certified=0))
    yield "verdict, rounding decides", sentence(replace(VERDICT, undecided=2))
    part = replace(VERDICT, in_reach=10, reached=9)
    yield "verdict, some out of reach met", sentence(part)
    yield "verdict, out of reach", sentence(replace(part, reached=12))
    yield "verdict, all in reach", sentence(replace(VERDICT, in_reach=20, reached=12))
    yield "verdict, chance", sentence(replace(VERDICT, p_value=0.31, kind=Kind.AMBIGUOUS))
    few = replace(VERDICT, p_value=0.5, controls=1, origin=Origin.GIVEN, kind=Kind.CANNOT_KNOW)
    yield "verdict, one control", sentence(few)
    drawn = replace(VERDICT, p_value=1 / 11, controls=10, origin=Origin.RESAMPLED)
    yield "verdict, few controls", sentence(drawn)
    for why in Unknowable:
        yield (
            f"verdict, {why.value}",
            sentence(
                replace(VERDICT, kind=Kind.CANNOT_KNOW, why_not=why, p_value=math.nan, chance=13.4)
            ),
        )
    for told in ((64, 1, 0), (64, 64, 0), (60, 64, 4), (64, 16, 0)):
        yield f"starts {told}", verdicts.starts(*told)
    yield "on the CPU", verdicts.on_cpu("Hinges")
    yield "starts, union", verdicts.union([64, 40, 32, 31, 1], 64)
    yield "starts, best", verdicts.best_start(7, 18, 20, 64, 0.01)
    yield "images", sentence(IMAGES)
    yield "images, few matched", sentence(replace(IMAGES, found=2, kind=Kind.AMBIGUOUS))
    yield "images, chance", sentence(replace(IMAGES, p_value=0.4, kind=Kind.AMBIGUOUS))
    by_ssim = replace(IMAGES, measure="ssim", found=4, most=0, of_controls=0.0)
    yield "images, by two measures", verdicts.images({"rank": IMAGES, "ssim": by_ssim}, "ssim")
    yield "images, which count", verdicts.image_rule(IMAGES)
    yield "images, which count by SSIM", verdicts.image_rule(by_ssim)
    few = replace(IMAGES, p_value=1 / 15, least=1 / 15, controls=2, kind=Kind.CANNOT_KNOW)
    yield "images, few controls", sentence(few)
    one = replace(IMAGES, controls=1)
    yield "images, one control", sentence(one)
    yield (
        "images, no controls",
        sentence(
            replace(IMAGES, why_not=Unknowable.NO_CONTROLS, controls=0, kind=Kind.CANNOT_KNOW)
        ),
    )


def of_explanations() -> Named:
    """Points at the edge, and other sets that explain the weights."""
    yield "several at the edge", explanations.edge(tensor(1, 0, 1) > 0)
    yield "alike", explanations.alike(FARTHEST)
    yield "alike, no other", explanations.alike(NONE_FAR)
    yield "farthest", sentence(FARTHEST)
    yield "farthest, less well", sentence(replace(FARTHEST, residual=0.02, truth=0.01))
    yield "farthest, no other", sentence(NONE_FAR)
    yield "farthest, perhaps no other", sentence(replace(NONE_FAR, at_most=0.0417))
    yield "farthest, no other, coarse", sentence(replace(NONE_FAR, truth=0.2))
    yield "merging", sentence(Merging(OTHERS, False, 1.0))
    yield "merging, signed", sentence(Merging(OTHERS, True, 0.4567))


def of_energy() -> Named:
    """Energy maps."""
    yield "energies, needle", sentence(SEEN)
    yield "energies, away from home", sentence(replace(SEEN, here=0.4, home=1e-14))
    yield "energies, redundant", sentence(replace(SEEN, without=0.001))
    yield (
        "energies, at the edge",
        sentence(Energies(np.full(1000, 0.5), 0.0, 1e-6 * (1 + 5e-7), 0.0328)),
    )
    u = tensor(1, 0)
    yield "split, none", sentence(Split(u, 0.0, RISING, 0.1))
    yield "split, none, refitted", sentence(Split(u, 0.0, FLAT, 0.0))
    yield "split, nothing to split", sentence(Split(u, 0.0, RISING, 0.5, False))
    yield "split, everywhere free", sentence(Split(u, math.inf, RISING, 0.5))
    yield "split, free", sentence(Split(u, 0.5, FLAT, 0.0))
    yield "starts", sentence(StartsSummary(1e-9, 0.123, 0.98, 0.0345, 66))
    yield "ridge", sentence(RidgeSummary(False, 0.0123, 1.5, 0.0345))
    yield "last layer", sentence(RidgeSummary(True, 0.0123, 1.5, 0.0345))
    yield "picture, forced", sentence(replace(PICTURE, forced=0.875, archetype="needle"))
    hidden = replace(SEEN, without=0.001)
    yield "picture, forced, hidden", sentence(replace(PICTURE, about=hidden, forced=1.0))
    bounded = replace(SEEN, here=0.4, cut=2)
    yield "picture, upper bounds", sentence(replace(PICTURE, about=bounded))
    crowded = replace(PICTURE, about=replace(bounded, crowded=3))
    yield "picture, upper bounds twice", sentence(crowded)
    yield "picture, crowded places", sentence(replace(PICTURE, about=replace(SEEN, crowded=3)))


def of_membership() -> Named:
    """Rules of membership inference."""
    yield "rule, known margin", sentence(MemberRule(1.0, "known margin", share=0.5, margin=2.0))
    yield (
        "rule, leaked point",
        sentence(MemberRule(0.5, "leaked point", share=0.5, top=1.0, suspects=3)),
    )
    bounded = MemberRule(0.2, "bounded margin", low=0.5, ceiling=0.125)
    yield "rule, bounded margin", sentence(bounded)
    yield "rule, no threshold", sentence(replace(bounded, ceiling=0.75))
    yield "networks without a margin", membership.without_margin(11, 20)


def hinges() -> Iterator[tuple[str, HingeState]]:
    """The hinge attack from stage to stage."""
    places, none = torch.zeros(3, 2), tensor()
    first = HingeState(
        0, "lines", places[:0], none, none, none, 1.0, 1.0, places, none.new_zeros(5), none,
        torch.zeros(17, 2), torch.zeros(0, dtype=torch.long), none, (),
    )  # fmt: skip
    there = {"x": places, "y": tensor(1, 1, -1), "lam": tensor(3, 2, 1)}
    crossed = replace(first, t=1, stage="cross", tried=40, near=9, **there)
    unasked = tensor(math.nan, math.nan, math.nan)
    fitted = replace(crossed, t=2, stage="fit", residual=0.123, without=unasked)
    merged = replace(fitted, t=8, stage="prove", limit=0.2)
    yield "lines", first
    yield "crossings", crossed
    yield "crossings of a file of version 0.1", replace(crossed, tried=None, near=None)
    yield "fit", fitted
    yield "questions", merged
    yield "nothing fitted", replace(merged, stage="done", x=places[:0], without=none)
    yield "needed", replace(merged, without=tensor(0.31, math.nan, math.nan))
    yield "not needed", replace(merged, without=tensor(0.31, 0.15, math.nan))
    edge = 0.2 * (1 - 5e-7)
    yield "at the edge", replace(merged, without=tensor(0.31, edge, math.nan))
    yield "done", replace(merged, stage="done", without=tensor(0.31, 0.15, 0.12))
    yield "done, one at the edge", replace(merged, stage="done", without=tensor(0.31, edge, 0.12))


def pooled_states() -> Iterator[tuple[str, PooledState]]:
    """The pooled attack where it differs from the hinge attack."""
    known = dict(hinges())
    more: dict[str, Any] = {
        "seed": 1, "found": torch.eye(2).double(), "labels": tensor(1, 1),
        "heft": tensor(1, 1), "start": torch.tensor([0, 1]),
    }  # fmt: skip

    def of(name: str, **changes: object) -> PooledState:
        return PooledState(**{**vars(known[name]), **more, **changes})

    yield "lines", of("lines", stage="starts")
    yield "starts", of("fit", t=2, stage="starts")
    yield "crossings", of("crossings", t=7)
    yield "places of the starts", of("fit", t=8)
    yield "fit", of("fit", t=9)
    nothing = tensor(0, 0, 0) > 0
    unasked = tensor(math.nan, math.nan, math.nan)
    yield "first questions done", of("done", stage="weigh", rise=unasked, also=nothing)
    asked = {"rise": tensor(math.nan, 0.27, math.nan), "stage": "weigh"}
    yield "needed by the largest component", of("done", **asked, also=tensor(0, 1, 0) > 0)
    yield "not needed by it", of("done", **asked, also=nothing)
    yield "done", of("done", rise=asked["rise"], also=tensor(0, 1, 0) > 0)


def walks() -> Iterator[tuple[str, UnivariateState]]:
    """The univariate attack from phase to phase."""
    nan = math.nan
    first = UnivariateState(
        0, tensor()[:, None], tensor(), tensor(), tensor(), tensor(), (), (), 0, (-1, -1), "walk",
        EXACT, nan, nan, nan, 3e-12, 7,
    )  # fmt: skip
    turned = replace(first, t=1, looked=(2, 3), at=4)
    off, loose = {"defect": 0.0021, "tol": TRAINED}, {"tol": TRAINED}
    yield "start", first
    yield "start, trained tolerances", replace(first, **loose)
    yield "start of a file of version 0.1", replace(first, intervals=0)
    for seen in ("3.2", "3.3", "shared 3.2", "empty", "flat everywhere", "one interval", "flat",
                 "last", "before flat", ""):  # fmt: skip
        yield f"turn, {seen or 'of a file of version 0.1'}", replace(turned, seen=seen, places=3)
    yield "turn, one place", replace(turned, seen="3.2", places=1)
    yield "turn, likely", replace(turned, seen="3.2", places=3, **off)
    yield "turn, likely shared 3.3", replace(turned, seen="shared 3.3", places=2, **off)
    there = {"x": tensor(-1, 0.5)[:, None], "y": tensor(1, -1), "lam": tensor(2, 1),
             "least": tensor(nan, nan), "most": tensor(nan, nan)}  # fmt: skip
    gathered = replace(first, t=4, phase="fit", added=1, **there)
    yield "gathered", gathered
    yield "gathered beside flat intervals", replace(gathered, flat=2)
    yield "gathered, in a file of version 0.1", replace(gathered, added=None)
    fitted = replace(gathered, phase="prove", miss=2e-10, eps=1e-9, residual=0.07, imbalance=0.012)
    yield "fitted", fitted
    yield "fitted, off", replace(fitted, **off)
    yield "fitted, nobody looked", replace(fitted, defect=nan)
    yield "fitted, trained tolerances", replace(fitted, **loose)
    far = replace(fitted, phase="done", **off)
    yield "too far", far
    yield "too far, in a file of version 0.1", replace(far, imbalance=nan)
    asked = replace(fitted, at=1, least=tensor(1.25, nan), most=tensor(2.5, nan))
    yield "proven", asked
    yield "likely", replace(asked, **off)
    yield "not proven", replace(asked, at=2, least=tensor(1.25, 0), most=tensor(2.5, math.inf))


def searches() -> Iterator[tuple[str, CertifiedState]]:
    """The search for certified places: begun, with nothing proven, under way and at its end."""
    none, places = torch.zeros(0), torch.zeros(3, 3)
    begun = CertifiedState(
        1, torch.zeros(0, 1), none, none, none, none, torch.zeros(0, 4), places,
        least=0.0123, threshold=0.05, reach=0.0, band=0.01, tau=0.005, box=2.5,
    )  # fmt: skip
    yield "not begun", replace(begun, t=0)
    yield "begun", begun
    yield "too far", replace(begun, least=0.345, threshold=1.0)
    yield "nothing", replace(begun, t=2, looked=16)
    some = tensor(0.31, 0.452)
    yield "some", replace(begun, t=2, looked=16, x=some[:, None], y=some, lam=some, radius=some)
    yield (
        "end",
        replace(
            begun, t=9, looked=70, x=some[:, None], y=some, lam=some, radius=some,
            waiting=torch.zeros(0, 3),
        ),
    )  # fmt: skip


def of_attacks() -> Named:
    """What the last step of an attack did."""
    for name, search in searches():
        yield f"certified, {name}", certified.words(search, CertifiedConfig())
    for name, state in hinges():
        yield f"hinge, {name}", hinge.words(state, HingeConfig())
    for name, joined in pooled_states():
        yield f"pooled, {name}", pooled.words(joined, PooledConfig())
    for name, walked in walks():
        yield f"univariate, {name}", univariate.words(walked, UnivariateConfig())


def line(**changes: object) -> arena.ArenaLine:
    """An attack of the arena over two runs of ten points."""
    shares = (Share(0.2, 0.1, 0.3), Share(0.6, 0.5, 0.7), Share(0.8, 0.7, 0.9))
    given: dict[str, Any] = {
        "key": "kkt", "title": "KKT reconstruction", "runs": 2, "message": "", "n": 20,
        "found": (4, 12, 16), "claims": 18, "recall": shares, "reach": shares,
        "precision": shares, "control": (0.0, 0.012, 0.1), "distance": 0.2, "residual": 0.3,
        "seconds": 2.0, "kind": Kind.FOUND, "p_value": 0.01, "p_adjusted": 0.01,
        "chance": (0,) * 99, "origin": Origin.HELD_OUT, "once": (6, 9),
    }  # fmt: skip
    return arena.ArenaLine(**{**given, **changes})


OF_FOUR = replace(VERDICT, n=4, found=3, claims=5)
RANKED = RankVerdict(
    kind=Kind.FOUND, p_value=0.01, n=4, claims=5, found=3, chance=0.2, origin=Origin.POOLED,
    controls=999, shares=tensor(0.01, 0.02, 0.05, 0.4), held_out=80, fewest=30, source_p=0.4,
)  # fmt: skip
RANKS: dict[str, dict[str, Any]] = {
    "found": {},
    "chance": {"p_value": 0.4},
    "few": {"why_not": Unknowable.NO_CONTROLS, "fewest": 7, "source_p": math.nan},
    "other source": {"why_not": Unknowable.NO_CONTROLS, "source_p": 0.001},
    "no claims": {"why_not": Unknowable.NO_CLAIMS},
}


def audited() -> Audit:
    """An audit of four points by one attack."""
    points = Dataset(torch.zeros(4, 2).double(), tensor(1, 1, -1, -1))
    where = Coordinates("as given", tensor(0, 0), tensor(1, 1))
    claims = Report(points.x, points.y, points.y)
    tried = AuditAttack("kkt", "KKT reconstruction", claims, OF_FOUR, 2.0)
    return Audit(
        NET, points, ("down", "up"), where, 1.0, 0.03, CERTIFICATE.q, CERTIFICATE, (tried,),
        Controls(()),
    )  # fmt: skip


def proofs(explain: Frame) -> Iterator[tuple[str, Frame]]:
    """The last act at each of its moments."""
    assert explain.target is not None and explain.aim is not None
    rows = [[0, -1.0, 0.3, 1.0, 0.2], [1, 1.0, 0.3, -1.0, 0.15], [1, 1.0, 0.1, -1.0, 0.15]]
    made = Needed(np.array(rows), 0.1, 0.0, 0.06, 7, 7, 2.5, 1.01)
    cone: Any = SimpleNamespace(least=SimpleNamespace(high=0.06))
    begun = Proof(explain.target)
    every = Proof(explain.target, made, cone)
    none = replace(every, needed=made.until(0))
    shown: dict[str, Proof] = {
        "begun": begun, "first": replace(begun, needed=made.until(1)), "all": every,
        "revealed": replace(every, revealed=True), "none": none,
        "none, revealed": replace(none, revealed=True),
        "none, some open": replace(every, needed=replace(made.until(0), spared=5)),
    }  # fmt: skip
    for name, at, low, high in (
        ("needed", 0.0, 0.2, 0.21), ("edge", 0.0, 0.09, 0.11), ("free", 0.0, 0.07, 0.08),
        ("cut", -0.8, 0.07, 0.08), ("nothing", 0.0, 0.05, 0.06),
    ):  # fmt: skip
        refit: Any = SimpleNamespace(low=low, high=high)
        shown[f"disc, {name}"] = replace(every, centre=(at,), radius=0.2, refit=refit)
    for name, held in shown.items():
        yield f"proof, {name}", replace(explain, asked=held)
    nobody = Dataset(torch.zeros(0, 1), torch.zeros(0))
    untold = replace(explain, aim=replace(explain.aim, truth=nobody))
    yield "proof, untold", replace(untold, asked=every)


def told_of(*radii: float) -> Determination:
    """What is known over all explanations, with these certified radii."""
    return replace(OVER_ALL, certainty=replace(CERTAIN, radius=tensor(*radii)))


def of_audits() -> Named:
    """What an audit says, and what it rests on."""
    made = audited()
    (tried,) = made.tried
    yield "audit", made.sentence
    two = replace(made, tried=(tried, replace(tried, verdict=replace(OF_FOUR, p_value=0.4))))
    yield "audit, two attacks", two.sentence
    chance = replace(tried, verdict=replace(OF_FOUR, p_value=0.4))
    yield "audit, chance", replace(made, tried=(chance,)).sentence
    none = replace(OF_FOUR, why_not=Unknowable.NO_CLAIMS, p_value=math.nan)
    yield "audit, no claims", replace(made, tried=(replace(tried, verdict=none),)).sentence
    crowded = replace(OF_FOUR, why_not=Unknowable.CROWDED, chance=3.0, origin=Origin.HELD_OUT)
    yield "audit, crowded", replace(made, tried=(replace(tried, verdict=crowded),)).sentence
    pooled = replace(OF_FOUR, origin=Origin.POOLED)
    yield "audit, pooled", replace(made, tried=(replace(tried, verdict=pooled),)).sentence
    few = replace(pooled, p_value=0.4, chance=0.0)
    yield "audit, few held-out", replace(made, tried=(replace(tried, verdict=few),)).sentence
    many = replace(made, data=Dataset(torch.zeros(4, 8).double(), tensor(1, 1, -1, -1)))
    yield "audit, many coordinates", replace(many, tried=(chance,)).sentence
    for name, changes in RANKS.items():
        ranked = replace(tried, verdict=replace(RANKED, **changes))
        one = replace(many, tried=(ranked,))
        yield f"audit, ranks, {name}", one.sentence
        yield f"audit, ranks, one attack, {name}", audit_words.attack_sentence(one, ranked)
    yield "audit, ranks, where", audit_words.found_where(one)
    failed = replace(tried, verdict=None, message="Stopped.")
    yield "audit, failed", replace(made, tried=(failed,)).sentence
    yield "audit, no attack", replace(made, tried=()).sentence
    wrong = replace(made, q=tensor(1, -1, 2, 3))
    yield "audit, wrong side", wrong.sentence
    yield "audit, repeats", replace(made, repeats=2).sentence
    yield "audit, all on the wrong side", replace(made, q=-made.q.abs(), tried=()).sentence
    plain = Network((torch.ones(1, 1).double(), torch.ones(1, 1).double()), (None, None))
    near = Dataset(torch.tensor([[0.1], [0.9]]).double(), tensor(-1, 1))
    split = replace(made, net=plain, data=near, q=tensor(-0.1, 0.9), tried=())
    yield "audit, split at 0.5", split.sentence
    for name, radii in (("all", (1, 1, 1, 1)), ("one", (1, 0, 0, 0)), ("none", (0, 0, 0, 0))):
        yield f"audit, {name} proven", replace(made, determined=told_of(*radii)).sentence
    missed = replace(made, tried=(chance,), determined=told_of(1, 0, 0, 0))
    yield "audit, chance and proven", missed.sentence
    bound = replace(OVER_ALL, certainty=replace(CERTAIN, radius=tensor(1, 0, 0, 0), tight=False))
    yield "over all, three layers", explanations.over_all(bound)
    bound = replace(
        bound, certainty=replace(bound.certainty, top=math.inf),
        farthest=replace(bound.farthest, at_most=math.inf),
    )  # fmt: skip
    priced = replace(wrong, decay=0.01, certificate=None, determined=bound)
    yield "audit, weight decay", priced.sentence
    yield "over all, weight decay", explanations.over_all(bound)
    void = replace(OVER_ALL, allowed=0.93)
    yield "audit, void", replace(made, determined=void).sentence
    yield "over all", explanations.over_all(OVER_ALL)
    yield "over all, void", explanations.over_all(void)
    yield "audit, one attack", audit_words.attack_sentence(made, tried)
    yield "audit, one attack ended", audit_words.attack_sentence(made, replace(tried, ended=True))
    other = replace(made.coordinates, name="standardised")
    cases = (
        made, wrong, replace(made, net=BIASED, certificate=None), replace(made, certificate=None),
        replace(made, net=replace(NET, assumed_relu=True), coordinates=other),
        replace(made, coordinates=replace(other, inner=NET), folded=("batch normalisation",)),
        replace(made, certificate=None, coordinates=replace(other, compared=False)),
        replace(made, shared=3, undetermined="at most 60 neurons are certified here."),
        replace(made, repeats=2), priced, replace(priced, determined=None),
        replace(priced, determined=replace(bound, allowed=0.46)),
    )  # fmt: skip
    for k, case in enumerate(cases):
        for one in audit_words.assumptions(case):
            yield f"audit, assumption {one.name} {k}", f"{one.met}: {one.words}"


def of_research() -> Named:
    """Boards, grids, explanations on screen, and a search beside the defaults."""
    one = line()
    yield "arena, nothing ran", arena_words.sentence([])
    yield "arena, none could run", arena_words.sentence([line(runs=0)])
    yield "arena, one attack", arena_words.sentence([one])
    nothing = Share(0.0, 0.0, 0.1)
    other = line(key="inversion", title="Model inversion", found=(0, 1, 2), p_adjusted=0.4,
                 reach=(nothing,) * 3)  # fmt: skip
    yield "arena, two attacks", arena_words.sentence([one, other])
    yield "arena, none found", arena_words.sentence([replace(other, found=(0, 0, 0))])
    yield "arena, none in reach", arena_words.sentence([other])
    yield "arena, chance", arena_words.sentence([line(p_value=0.4, p_adjusted=0.4)])
    few = line(p_value=1 / 11, p_adjusted=1 / 11, chance=(0,) * 10, origin=Origin.RESAMPLED)
    yield "arena, few controls", arena_words.sentence([few])
    rival = line(key="hinge", title="Hinges", reach=(Share(0.5, 0.4, 0.6),) * 3)
    yield "arena, a rival", arena_words.sentence([one, rival, other])
    boards = ([one], [one, other], [replace(other, found=(0, 0, 0))], [other], [few], [one, rival])
    for k, board in enumerate(boards):
        yield f"arena, title {k}", arena_words.title(board)
    for k, board in enumerate((*boards, [line(p_value=0.4, p_adjusted=0.4)])):
        yield f"arena, under its title {k}", arena_words.below(board)
        for name, value in arena_words.numbers(board):
            yield f"arena, number {k}: {name}", value
    yield "arena, determined", arena_words.sentence([line(determined=15, sure=11)])
    yield "arena, word", one.word
    yield "arena, word of chance", few.word
    ends = np.full((1, 3, 3, 3), 0.5)
    ends[0, 0], ends[0, 2, 0] = 0.1, 0.05
    grid = maps(3, [])
    yield "grid, no cell", grid_words.sentence(grid)
    whole = replace(grid, end=ends)
    yield "grid, all cells", grid_words.sentence(whole)
    ends = ends.copy()
    ends[:, :, 1, 1] = np.nan
    yield "grid, one cell left", grid_words.sentence(replace(grid, end=ends))
    yield "grid, not converged", grid_words.without_agreement(["affine from random"])
    yield "trial", tuning_words.trial(Trial(3, {}, KKTConfig(), 0.0321, 4.5, 6.0))
    points = preset("moons", 5)
    for tuned, usual in ((3, 2), (2, 3), (3, 3)):
        both = (
            SimpleNamespace(scores=(score(points, points.x[:count], points.y[:count]),) * 2)
            for count in (tuned, usual)
        )
        yield f"tuned {tuned}, defaults {usual}", tuning_words.comparison(*both)
    yield "tuned, no truth", tuning_words.comparison(*(SimpleNamespace(scores=None),) * 2)
    state = SimpleNamespace(
        change=3e-9, base=1e-9, left=1e-9, exact=True, margin_error=1e-9, slackness=0.0, words="",
        truth=OTHERS, now=OTHERS, pinned=torch.arange(7) < 5, forced=None,
        far=None, slide=None,
    )  # fmt: skip
    shown = {
        "truth": state, "all pinned": ns(state, pinned=torch.arange(7) < 7),
        "both pinned": ns(state, now=PAIR, truth=PAIR, pinned=torch.ones(2) > 0),
        "as well": ns(state, now=FARTHEST.explanation.take(torch.ones(7) > 0), words="Split."),
        "trained": ns(state, exact=False, base=0.0123, left=0.0123),
        "far from a KKT point": ns(state, exact=False, base=0.352, left=0.352),
        "split, far": ns(state, base=0.352, left=0.352, words="Split.",
                         now=FARTHEST.explanation.take(torch.ones(7) > 0)),
        "off the margin": ns(state, margin_error=0.25), "left its cell": ns(state, change=0.2),
        "no other": ns(state, far=NONE_FAR),
        "farthest": ns(state, far=FARTHEST, now=FARTHEST.explanation),
        "farthest, far": ns(state, far=FARTHEST, base=0.352, left=0.352),
        "farthest, less well": ns(state, far=FARTHEST, left=0.2),
        "bounded": ns(state, forced=1, words="Nothing is certified. Of 12 points 3 are in all."),
    }  # fmt: skip
    for name, each in shown.items():
        history: Any = SimpleNamespace(present=each)
        frame = Frame("explain", History(Dataset(OTHERS.x, OTHERS.y)), explain=history)
        yield f"headline, explain, {name}", headline_of(frame)


def ns(state: SimpleNamespace, **changes: object) -> Any:
    """The same with changes."""
    return SimpleNamespace(**{**vars(state), **changes})


def headline_of(frame: Frame, running: bool = False) -> str:
    """Return all that a headline says."""
    made = headline(frame, running)
    fold = "; ".join(f"{name} {value}" for name, value in made.fold)
    button = "" if made.action is None else f"[{made.action.label}]"
    said = (made.question, made.tone, made.title, made.under_title, fold, button)
    return " | ".join(filter(None, said))


def drawn_frames() -> Iterator[tuple[str, Frame]]:
    """What a page shows before training."""
    points = Dataset(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([1.0, -1.0]))
    drawn = Frame("draw", History(points))
    three = Dataset(torch.eye(3, 2), torch.tensor([1.0, -1.0, 3.0]))
    for name, data in (
        ("nothing drawn", Dataset(torch.zeros(0, 2), torch.zeros(0))), ("drawn", points),
        ("one class", Dataset(points.x, torch.ones(2))), ("three classes", three),
        ("clash", Dataset(torch.zeros(2, 2), points.y)),
    ):  # fmt: skip
        yield name, replace(drawn, drawing=History(data))
    run: Any = SimpleNamespace(t=1200, q=tensor(1, 2))
    wrong = SimpleNamespace(t=1200, q=tensor(1, -2))
    yield "drawn, trained", replace(drawn, training=Training(run))
    yield "drawn, in training", replace(drawn, training=Training(cast(Any, wrong)))
    yield "drawn since", replace(drawn, training=Training(run, before=run))


def trained_frames() -> Iterator[tuple[str, Frame]]:
    """What it shows of training."""
    points = Dataset(torch.eye(4, 2), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    start = Frame("train", History(points))
    run: Any = SimpleNamespace(t=1200, net=NET, q=tensor(1, 1.005, 2, 3), gamma_bar=0.1)
    wrong, later = ns(run, q=tensor(1, -1, 2, 3)), ns(run, t=1300)
    light = {kind: replace(CERTIFICATE, light=kind, residual=left) for kind, left in (
        (Light.SEPARATED, 0.6), (Light.APPROACHING, 0.2), (Light.NEAR, 0.0123),
        (Light.EXACT, 3e-14),
    )}  # fmt: skip
    parts: dict[str, Training] = {
        "not begun": Training(ns(wrong, t=0)),
        "not separated": Training(wrong),
        "separated": Training(run),
        "all hold it": Training(ns(run, q=tensor(1, 1, 1, 1))),
        "biased": Training(ns(run, net=BIASED)),
        "weight decay": Training(run, weight_decay=0.1),
        "of a file": Training(ns(run, t=0), given=True),
        "of a file, wrong": Training(ns(wrong, t=0), given=True),
        "earlier certificate": Training(later, light[Light.NEAR], run),
        "level": Training(run, light[Light.APPROACHING], run, growth=0.004),
        "off the margin": Training(run, replace(light[Light.APPROACHING], slackness=0.25), run),
        "weight off the margin": Training(
            run, replace(light[Light.APPROACHING], lam=torch.ones(4)), run
        ),
        "earlier certificate, exact": Training(later, light[Light.EXACT], run),
    }
    parts |= {kind.value: Training(run, made, run) for kind, made in light.items()}
    for name, part in parts.items():
        yield name, replace(start, training=part)
    for status in (Status.DEAD, Status.DIVERGED):
        yield status.value, replace(start, training=Training(run), status=status)


def attacked_frames() -> Iterator[tuple[str, Frame]]:
    """What it shows of an attack."""
    points = Dataset(torch.eye(4, 2), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    stand: Any = SimpleNamespace(t=0, x=torch.zeros(4, 2), numbers=lambda: {"l_stationary": 1e-6})
    end: Any = ns(stand, t=7)

    def frame(
        made: Verdict | None = VERDICT, at: Any = end, judged: Any = None, net: Network = NET,
        known: Certificate | None = CERTIFICATE, over: bool = True,
        certainty: Certainty | None = None, **changes: Any,
    ) -> Frame:  # fmt: skip
        part = Attacking(state=at, verdict=made, judged=judged or at, **changes)
        aim = Aim(net, Target(net), points, Controls(()), known, certainty)
        status = Status.FINISHED if over else Status.RUNNING
        return Frame("attack", History(points), aim=aim, attack=part, status=status)

    yield "at its start", frame(at=stand)
    yield "at its start, no candidates", frame(at=ns(stand, x=torch.zeros(0, 2)))
    yield "at its start, from the truth", frame(at=stand, mix=(0.5, 1.0))
    yield "on its way", frame(at=end, judged=stand)
    yield "judged earlier", frame(at=ns(end, t=9), judged=end, over=False)
    yield "found", frame()
    yield "found, not at its end", frame(over=False)
    yield "found, by chance as well", frame(replace(VERDICT, origin=Origin.RESAMPLED))
    yield "found, from the truth", frame(mix=(0.5, 1.0))
    yield "found, biased", frame(net=BIASED, known=None)
    yield "found, three layers", frame(net=DEEP)
    explain = replace(frame(), stage="explain")
    assert explain.target is not None
    for name, top, done in (("so far", 0.01, False), ("none", 0.1, True), ("some", 0.3, True),
                            ("nothing", 1e-11, True)):  # fmt: skip
        rays = RadiusMap(
            np.full((2, 3), top),
            *np.array([[-1.0], [1.0]]),
            0.3,
            0.0,
            min(top, 0.01),
            0.15,
            2.5,
            1.01,
        )
        for known, map_ in (("", rays), (", points known", replace(rays, truth=0.2))):
            yield (
                f"radii, {name}{known}",
                replace(explain, radii=Certain(explain.target, map_, done)),
            )
    yield from proofs(explain)
    part = replace(VERDICT, in_reach=13, reached=12)
    yield "found, some in reach", frame(part)
    few = replace(part, kind=Kind.NOT_RECOVERABLE, found=1, in_reach=4, reached=1, p_value=0.3)
    yield "few in reach", frame(few)
    far = ns(end, numbers=lambda: {"l_stationary": 0.09})
    yield "few in reach, far", frame(few, far)
    yield "few in reach, not at its end", frame(few, over=False)
    open_ = replace(VERDICT, kind=Kind.AMBIGUOUS, found=2, claims=3, p_value=0.3)
    yield "others as well", frame(open_)
    yield "others as well, several classes", frame(open_, net=SEVERAL)
    yield "candidates explain little", frame(open_, far)
    yield "mostly wrong", frame(replace(open_, claims=9), far)
    yield "mostly wrong, others as well", frame(replace(open_, claims=9))
    yield "not near", frame(open_, known=replace(CERTIFICATE, light=Light.SEPARATED, residual=0.6))
    slack = replace(CERTIFICATE, light=Light.APPROACHING, slackness=0.1)
    yield "not near, off the margin", frame(open_, known=slack)
    yield "no numbers", frame(open_, ns(end, numbers=dict))
    for why in Unknowable:
        made = replace(VERDICT, kind=Kind.CANNOT_KNOW, why_not=why, p_value=math.nan)
        yield f"cannot know, {why.value}", frame(made)
    yield "no claims yet", frame(replace(made, why_not=Unknowable.NO_CLAIMS), over=False)
    yield "few controls", frame(replace(VERDICT, kind=Kind.CANNOT_KNOW, controls=1))
    nothing = Dataset(torch.zeros(0, 2), torch.zeros(0))
    alone = frame(None, claims=Report(torch.zeros(3, 2), torch.ones(3), torch.ones(3)))
    yield "no data", replace(alone, aim=replace(alone.aim, truth=nothing))  # type: ignore[type-var]
    given = Training(end, given=True)
    yield "no data yet", replace(frame(), stage="train", training=given, drawing=History(nothing))
    held: Any = SimpleNamespace(
        energies=None,
        arrivals=None,
        census=None,
        counting=None,
        trail=(),
        problem=SimpleNamespace(of=SimpleNamespace(attack="kkt")),
    )
    shown = replace(frame(), stage="landscape", landscape=History(None))  # type: ignore[arg-type]
    yield "its landscape", replace(shown, starts=held)
    yield "refused landscape", replace(shown, no_starts="a reason, and what to do.")
    yield "no landscape", replace(frame(net=BIASED), stage="landscape")
    yield "compare", replace(frame(), stage="arena")
    shown = frame()
    assert shown.target is not None
    yield "compare, shown", replace(shown, stage="arena", arena=Shown(shown.target, "A does best."))


def of_headlines() -> Named:
    """The headline of the page, stage by stage."""
    for name, frame in (*drawn_frames(), *trained_frames(), *attacked_frames()):
        yield f"headline, {frame.stage}, {name}", headline_of(frame)
        played = headline_of(frame, running=True)
        if played != headline_of(frame):
            yield f"headline, {frame.stage}, {name}, played", played


def census_words() -> Named:
    """The words of a census of the triangle."""
    says, x = page_census, torch.zeros(4, 2)
    flat, some = Conditions(0.0, 0.0), Share(0.3, 0.11, 0.6)
    kinds = [
        Basin((k,), some, kind, 0.0123, x, 3, 0.05, flat, hard, False)
        for k, (kind, hard) in enumerate(zip(says.KINDS, [0.02] + 5 * [math.nan], strict=True))
    ]
    for off, level in ((0.01, 10), (0.9, 9)):
        made = Census(CensusConfig(), tuple(kinds), torch.zeros(10, 3), np.zeros(10, int),
                      Unseen(some, 3.0), level, (1, 2), (0.1, off), some)  # fmt: skip
        yield f"census, {off} off", ": ".join(says.census_words(made))
        runs = Arrivals(21, 21, 21, 18, 2, 0.01, 20)
        yield f"census, {off} off, after attacks", ": ".join(says.census_words(made, -1, runs, 40))
    for k, one in enumerate(kinds):
        yield f"census, {one.kind}", ": ".join(says.census_words(made, k))
        yield f"census, {one.kind} in the list", says.end(made, k)
    yield "census, legend", says.legend(made)


def starts_words(empty: Frame, begun: Frame, several: Frame) -> Named:
    """The words of the triangle of starts."""
    says = page_starts
    hinges = replace(begun, attack=replace(begun.attack, name="hinge"))
    for name, frame in (("no weights", empty), ("no start", hinges), ("three classes", several)):
        yield f"starts, none, {name}", says.why_none(frame)
    lattice = np.where(np.add.outer(range(4), range(4)) < 4, 0.9, np.nan)
    for name, cells in (
        ("all alike", ()), ("truth alone", ((0, 3), (0, 2))), ("all", None),
        ("some", ((0, 0), (0, 3))),
    ):  # fmt: skip
        values = lattice - 0.89 if cells is None else lattice.copy()
        for cell in cells or ():
            values[cell] = 0.01
        for own, which in ((False, ""), (True, ", bilevel")):
            title, words = says.title(values, own)
            yield f"starts, map, {name}{which}", f"{title}: {words}"
    for name, made in (
        ("begun", Arrivals(21, 0, 0, 0, 0, 0.01, 20, True)),
        ("stopped", Arrivals(21, 0, 0, 0, 0, 0.01, 20)),
        ("some", Arrivals(66, 30, 30, 2, 1, 0.01, 20, True)),
        ("cancelled", Arrivals(66, 30, 29, 2, 1, 0.01, 20)),
        ("none", Arrivals(21, 21, 21, 0, 20, 0.01, 20)),
        ("one", Arrivals(21, 21, 20, 1, 1, 0.01, 20)),
        ("six", Arrivals(21, 21, 21, 6, 3, 0.01, 20)),
        ("all", Arrivals(21, 21, 19, 21, 0, 0.01, 8)),
    ):  # fmt: skip
        yield f"starts, arrived, {name}", ": ".join(says.arrival_words(made))
    place = (0.333, 0.333, 0.334)
    few = Report(torch.zeros(2, 2), torch.ones(2), torch.ones(2))
    for name, top in (("fell", 0.5), ("rose", 0.95)):
        trail = tuple(Passed(place, e, t, 7 * t) for t, e in enumerate((0.9, top, 0.02)))
        points: Any = SimpleNamespace(n=20)
        for drawn, own in ((False, False), (True, False), (False, True)):
            of: Any = SimpleNamespace(of=Grid(None, points, None, "kkt", None, 0, 6, drawn=drawn))
            last: Any = SimpleNamespace(t=2)
            rolled = Handle(of, None, place, few, 0.02, trail, shown=last)  # type: ignore[arg-type]
            told = "; ".join(map(" ".join, says.run_numbers(rolled, own)))
            yield f"starts, {name}, {drawn}, {own}", f"{': '.join(says.run_words(rolled))} {told}"
    noise = replace(rolled, weights=(0.0, 0.0, 1.0))
    yield "starts, from noise", ": ".join(says.run_words(noise))
    lattice[0, -1] = 0.01
    for attack in ("kkt", "bilevel"):
        of = SimpleNamespace(of=SimpleNamespace(attack=attack))
        here = Handle(of, None, place, few, 0.02, energies=lattice, usual=20)  # type: ignore[arg-type]
        for finest in (False, True):
            coarse = replace(here, finest=finest)
            yield f"starts, map, {attack}, {finest}", ": ".join(says.map_title(coarse))
    yield "starts, all explain", ": ".join(says.all_words(here))
    less = np.where(lattice < 1, 0.04, np.nan)
    less[0, 1], less[-1, 0] = 0.001, 0.5
    yield "starts, less than the truth", ": ".join(says.title(less))
    for m, usual in ((1, 1), (20, 20), (20, 100)):
        report = Report(torch.zeros(m, 2), torch.ones(m), torch.ones(m))
        held = Handle(None, None, place, report, 0.5, usual=usual)
        yield f"starts, {m} candidates for {usual}", says.beside(held)
    yield from census_words()
    for ended in (0, 90, 200):
        yield f"starts, counting, {ended}", ": ".join(says.counting_words(200, ended))
    yield "starts, readout", says.readout(place, 0.0123)
    yield "starts, readout of a run", says.readout(place, 1e-9, "at the end")
    yield "starts, readout in passing", says.readout(place, 0.0123, rough=True)
    for colours in says.YELLOW:
        yield f"starts, scale, {colours}", says.scale(1.0, colours, ("#000000", "#ffffff"))
        yield f"starts, unit, {colours}", says.unit("kkt", colours)
    yield "starts, unit, bilevel", says.unit("bilevel", "log")
    yield "starts, said", says.handle_words(place, 0.5)
    yield "starts, all", says.attack_all(21)
    row = {"truth": 0.1, "heldout": 0.2, "noise": 0.3, "energy": 0.02}
    yield "starts, a run", says.run((0, 0.5, 0.5), row)
    yield "starts, a run of another seed", says.run((1, 0.5, 0.5), row)
    yield "starts, loaded", says.loaded_run((0.5, 0.5), 200)
    yield "starts, ends", says.ends([3, 2, 1], 4)
    yield "starts, ends, stopped", says.ends([3, 2, 1], 4, False)
    for kind in says.PROFILES:
        yield f"starts, profile, {kind}", says.profile(kind, kind == "edges")
        yield f"starts, profile said, {kind}", says.profile_label(kind, 0.5, 0.5)
    yield "starts, profile, within", says.profile("edges", False, False)
    yield "starts, profile said, within", says.profile_label("edges", 0.5, 0.5, False)
    yield "starts, profile said, after", says.profile_label("noise", 0.5, 0.01)
    for archetype in says.ANSWERS:
        kind = "split" if archetype in ("one", "two", "nothing") else "point"
        seen = PointMap(np.zeros((1, 1)), (0, 1, 0, 1), (0, 1), archetype=archetype)
        found = says.headline(replace(begun, map_kind=kind, point_map=seen))
        yield f"starts, headline, {archetype}", " ".join(found or ())
    for kind in ("point", "split", "last"):
        found = says.headline(replace(begun, map_kind=kind))
        yield f"starts, headline, {kind}", " ".join(found or ())
        for name, values in (("curve", None), ("map", np.zeros((1, 1)))):
            seen = PointMap(values, (0, 1, 0, 1), (0, 1), archetype="fan" * (kind == "point"))
            found = says.headline(replace(begun, map_kind=kind, point_map=seen))
            yield f"starts, headline, {kind}, {name}", " ".join(found or ())
    yield "starts, first", says.first("")
    yield "starts, first, not yet", says.first("Train the network first.")


def of_page() -> Named:
    """The words of panels, where they are functions."""
    points = Dataset(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([1.0, -1.0]))
    empty = Frame("draw", History(Dataset(torch.zeros(0, 2), torch.zeros(0))))

    def attacked(net: Network) -> Frame:
        return replace(empty, stage="attack", aim=Aim(net, Target(net), points, Controls(())))

    for pattern, plain in glossary.GLOSSARY:
        yield f"glossary, {pattern}", plain
    yield "failure, no memory", failures.failure(MemoryError())
    yield "failure, else", failures.failure(IndexError("3 is too many"))
    yield "no energy, no weights", page_energy.nothing(empty)
    yield "no energy, biased", page_energy.nothing(attacked(BIASED))
    yield "no energy, several classes", page_energy.nothing(attacked(ON_A_LINE))
    yield "no energy, else", page_energy.nothing(attacked(NET))
    yield "energy, sketch", page_energy.SKETCH
    yield from answers()
    yield "energy, legend", page_energy.legend(PICTURE, True)
    yield (
        "energy, legend of a split",
        page_energy.legend(replace(PICTURE, kind="split"), True),
    )
    yield from starts_words(empty, attacked(NET), attacked(ON_A_LINE))
    walk = dict(walks())
    yield "univariate panel, proven", with_marks(univariate_panel.claims(walk["proven"]))
    yield "univariate panel, likely", with_marks(univariate_panel.claims(walk["likely"]))
    net = Target(Network((torch.ones(2, 1), torch.ones(1, 2)), (torch.ones(2), None)))
    groups = (Group("3.2", -1.0, 1.0, (-0.5, 0.5), (1.0, -1.0), True),
              Group("3.2", 1.0, 2.0, (0.5, 1.5), (-1.0, 1.0), False))  # fmt: skip
    exact = replace(walk["proven"], groups=groups)
    yield "univariate panel, rules", rules_html(univariate_panel.rules(net, exact))
    off = replace(walk["likely"], groups=groups)
    yield "univariate panel, rules, off", rules_html(univariate_panel.rules(net, off))
    yield (
        "univariate panel, rules, no group",
        rules_html(univariate_panel.rules(net, walk["proven"])),
    )
    bare = replace(exact, groups=(replace(groups[0], x=(), y=()),))
    yield "univariate panel, rules, empty group", rules_html(univariate_panel.rules(net, bare))
    for known, text in univariate_panel.ACTIVE.items():
        yield f"univariate panel, (a) {known.value}", text
    proof: Any = SimpleNamespace(rho=0.25, error_free=True)
    there: Any = SimpleNamespace(made=SimpleNamespace(ok=True), proof=proof, members=tensor(1, 1))
    works = Outcome(MemberRule(0.5, "known margin", share=0.5, margin=1.0), 10, 10, 0, 2000)
    vacuous = ns(there, proof=ns(proof, rho=math.inf, error_free=False))
    for name, world, found in (
        ("proved", there, works),
        ("vacuous", vacuous, works),
        ("errs", vacuous, replace(works, hits=4, alarms=300)),
    ):
        yield f"membership, {name}", " | ".join(page_membership.sentence(world, found))
    yield "membership, network", page_membership.network(there)
    bad = ns(there, made=SimpleNamespace(ok=False))
    yield "membership, no KKT point", page_membership.network(bad)


def answers() -> Named:
    """What a question of the page is answered with."""
    rivals: Any = SimpleNamespace(allowed=1e-5, extent=2.0)
    certain = {"exact": lambda k: ". ".join(page_explain.certified_words(k, 19, CERTAIN, 0.0111)),
               "margin": lambda k: page_explain.forced_words(rivals, k, 19)}  # fmt: skip
    for name, told in certain.items():
        for k in (0, 1, 7):
            yield f"answer, {name}, {k} certain", told(k)
    for name, far in (("farthest", FARTHEST), ("no other", NONE_FAR)):
        yield f"answer, {name}", explanations.farthest_set(far)
        yield f"answer, {name}, in few words", explanations.another(far)
        for what, value in explanations.numbers(far):
            yield f"answer, {name}: {what}", value
    for many in range(4):  # of three points; the first is certified in CERTAIN
        met = np.arange(3) < many
        yield f"{many} recovered, certified", found_words.certainty_words(CERTAIN, met)
    yield "images, recovered", found_words.images(6, 10, 0.125)
    yield "images, recovered clearly", found_words.images(6, 10, 0.125, 4)
    yield "images, without unseen ones", found_words.images(6, 10, math.nan)


def of_keeping() -> Named:
    """What the browser says of a page that it keeps."""
    yield from ((f"kept, {name}", words) for name, words in keeping.BAR.items())
    yield "kept, refused", keeping.REFUSED.format("the text ends too early.")
    yield "kept, large network", keeping.NOT_KEPT.format(12_000)
    frames = {**dict(drawn_frames()), **dict(trained_frames()), **dict(attacked_frames())}
    for name in ("one class", "separated", "found"):
        yield f"kept, of {name}", keeping.kept_words(frames[name])
    yield "kept, with a lesson", keeping.kept_words(frames["one class"], [1, 2])


def of_the_hall() -> Named:
    """What the projector and the phones say of a round."""
    made = Needed(np.array([[0, -1.0, 0.3, 1.0, 0.2]]), 0.1, 0.0, 0.06, 7, 7, 2.5, 1.01)
    yield "hall, taps", hall.hall_tapping(20)
    yield "hall, claims", hall.hall_claims(20)
    yield "hall, one claim, outside", hall.hall_claims(20, 1)
    yield "hall, proof", f"{hall.hall_places(made)} {hall.hall_scope(made)}"
    for name, title in (
        ("taps", hall.hall_title(made, 0, 20, proven=False, revealed=False)),
        ("claims", hall.hall_title(made, 22, 20, proven=False, revealed=False)),
        ("places", hall.hall_title(made, 22, 20, proven=True, revealed=False)),
        ("no places", hall.hall_title(None, 22, 20, proven=True, revealed=False)),
        ("points", hall.hall_title(made, 22, 20, proven=True, revealed=True)),
    ):
        yield f"hall, title, {name}", title
    yield "hall, answer", hall.hall_answer(18, 19)
    data = preset("alternating-circle", n=8)
    few, off = Dataset(data.x[:3], data.y[:3]), Dataset(data.x[5:] + 0.05, data.y[5:])
    claims = Dataset(data.x[:6], data.y[:6])
    for name, taps in (
        ("few tapped", {1: few}), ("many tapped", {1: few, 2: few, 3: off}), ("nobody tapped", {}),
    ):  # fmt: skip
        machine = judge(data, control_sets(data), claims.x, claims.y, finger_radius(Axes()))
        score = score_hall(data, taps, machine, 0.7)
        yield f"hall, what counts, {name}", hall.hall_within(score)
        yield (
            f"hall, rows, {name}",
            " | ".join(cell for row in hall.hall_rows(score, 0, 1, 1) for cell in row),
        )
        rows = hall.hall_open_rows(8, 6, score.guess)
        yield f"hall, rows before, {name}", " | ".join(cell for row in rows for cell in row)
    yield "hall, what counts", hall.hall_rule(0.1)
    yield "hall, where points stood", hall.hall_closing((0.08, 0.1))
    for name, missed, gone, off in (
        ("two without a trace", 2, 2, 2), ("one without a trace", 1, 1, 1),
        ("missed some", 5, 2, 3), ("off the margin", 2, None, 2),
    ):  # fmt: skip
        yield f"hall, {name}", hall.hall_missed(missed, gone, off)


def made() -> dict[str, str]:
    """All sentences by name."""
    parts = (
        enums, of_weights, of_verdicts, of_explanations, of_energy, of_membership, of_attacks,
        of_audits, of_research, of_headlines, of_page, of_keeping, of_the_hall,
    )  # fmt: skip
    found: dict[str, str] = {}
    for name, text in (pair for part in parts for pair in part()):
        assert name not in found, f"two sentences are called {name}"
        found[name] = text
    return found


if __name__ == "__main__":
    KEPT.write_text(json.dumps(made(), ensure_ascii=False, indent=1) + "\n")
