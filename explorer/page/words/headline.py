"""The one sentence on top of the page, as a function of the frame it stands beside."""

from __future__ import annotations

from explorer.engine.attacks.target import NO_THEOREM
from explorer.engine.classes import labels
from explorer.engine.data import Dataset
from explorer.page.frame import Frame
from explorer.research import explained
from explorer.research.words import verdicts, weights

ALL_STARTS = "Where an attack ends depends on where it starts: run it from every start at once."


def sentence(frame: Frame) -> tuple[str, str]:
    """Return the sentence at the top of the page, and its tone: "", "good", "warn" or "bad"."""
    attack, train, certificate = frame.attack, frame.training.state, frame.training.certificate
    run = frame.stage in ("attack", "landscape")
    share = attack.mix[0] * attack.mix[1]
    told = f"with {share:.0%} of the truth, which no attacker has" if share else ""
    if run and attack.verdict is not None and attack.state is not None:
        if not attack.state.t and frame.stage == "landscape":
            return ALL_STARTS, ""
        if not attack.state.t and (attack.scores is None or not attack.scores[0].found[1]):
            m = len(attack.state.x)
            if not m:
                return "The attack knows only the weights: press Play, or Step to see it work.", ""
            knows = told or "and know only the weights"
            return f"{m} candidates stand at their start {knows}: press Play.", ""
        tone = {"FOUND": "good", "AMBIGUOUS": "warn", "NOT_RECOVERABLE": "bad"}.get(
            attack.verdict.kind.name, ""
        )
        caveat = weights.caveat(frame.target) if frame.target is not None else ""
        if told:
            caveat = f"It began {told}. {caveat}".rstrip()
        return f"{verdicts.verdict(attack.verdict)} {caveat}".rstrip(), "warn" if caveat else tone
    if frame.stage == "landscape":
        return ALL_STARTS, ""
    if frame.stage == "explain" and frame.explain is not None:
        return explained.sentence(frame.explain.present)
    if frame.stage == "arena" and frame.arena is not None and frame.arena.target is frame.target:
        return frame.arena.sentence, ""
    if not frame.dataset.n:
        return "Nothing drawn yet: click on the plane to place points, or take a preset.", ""
    if frame.stage == "draw" or train is None:
        return _drawing(frame.dataset), ""
    if not train.net.homogeneous:
        wrong = int((train.q <= 0).sum())
        some = "1 point is" if wrong == 1 else f"{wrong} points are"
        state = f"{some} on the wrong side" if wrong else "All points are separated"
        return f"{state}; smallest margin {train.q_min:.3g}. {NO_THEOREM}", "warn"
    if certificate is not None:
        tones = {"EXACT": "good", "NEAR": "good", "APPROACHING": "warn", "SEPARATED": "warn"}
        return weights.certificate(certificate), tones.get(certificate.light.name, "")
    return "Training has not begun: press Play, or Step to take a single step.", ""


def _drawing(dataset: Dataset) -> str:
    several = dataset.outputs > 1
    counts = [int((dataset.y == label).sum()) for label in labels(dataset.outputs)]
    names = [str(k + 1) for k in range(len(counts))] if several else ["+1", "−1"]
    points = "1 point" if dataset.n == 1 else f"{dataset.n} points"
    parts = ", ".join(f"{c} of class {name}" for c, name in zip(counts, names, strict=True))
    text = f"{points}: {parts}."
    clash = dataset.conflict()
    if clash is not None:
        first, second = clash[0] + 1, clash[1] + 1
        how = "different" if several else "opposite"
        return (
            f"{text} Points {first} and {second} are equal with {how} labels: "
            "no network can separate them."
        )
    if dataset.n in counts:
        return f"{text} Add points of the other class, or train a network that is constant."
    return f"{text} Press Play to train a network on them."
