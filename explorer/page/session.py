"""The one shared state of a page, its commands, and its bounded memory.

Panels read `session.frame` and call the commands; they never know each other. A command that
cannot be carried out raises ValueError and leaves everything as it was; `guarded` makes that the
message on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch

from explorer.engine import data, training
from explorer.engine.data import Dataset
from explorer.engine.exact import Exact, maximum_margin
from explorer.engine.network import Network
from explorer.engine.status import Status
from explorer.page.frame import BEFORE, Stage, numbers
from explorer.page.history import Timeline
from explorer.page.stages.landscape import Walking

# Settings that only a new run can have.
BIRTH = {"widths", "bias", "all_biases", "init_scale", "init", "method"}
AT_ONCE_S = 1.0  # arbitrary: longer, and a page without a sign of life would seem broken
REVIVED = (
    "Neurons that were off on every point were drawn anew: without them the network could not "
    "learn the new points from where it is."
)
OLD_POINTS = (
    "These weights are those of the {} points that they were trained on: the points drawn now are "
    "others. Train again to attack weights of these."
)
CLASSES_CHANGED = (
    "The number of classes changed, and with it the number of the network's outputs: train anew."
)


class Session(Walking):
    """State and commands of one visitor's page."""

    # --- drawing ----------------------------------------------------------------------------
    def edit(self, dataset: Dataset, gesture: int | None = None) -> None:
        """Take `dataset` as the drawn set; edits of one gesture are undone together."""
        self._edits.push(dataset, gesture)
        self._take(dataset)

    def add(
        self, points: Iterable[tuple[Sequence[float], float]], gesture: int | None = None
    ) -> None:
        """Add ((x, ...), label) points; what does not fit is refused, the rest stays."""
        before = dataset = self.now.dataset
        try:
            for x, label in points:
                dataset = dataset.with_point(x, label)
        finally:
            if dataset is not before:
                self.edit(dataset, gesture)

    def undo(self) -> None:
        """Take the last edit back."""
        if not self._edits.undo():
            raise ValueError("Nothing to undo: no edit was made before.")
        self._take(self._edits.now)

    def redo(self) -> None:
        """Take the last undo back."""
        if not self._edits.redo():
            raise ValueError("Nothing to redo: no edit was taken back.")
        self._take(self._edits.now)

    def clear(self) -> None:
        """Erase all points; undo brings them back."""
        if self.now.dataset.n:
            self.edit(data.empty(self.now.dataset.d))

    def load(self, dataset: Dataset) -> None:
        """Replace the set by another, 1-D or 2-D; one undo brings the old one back."""
        if dataset.d not in (1, 2):
            raise ValueError(f"the plane shows points of 1 or 2 coordinates; got {dataset.d}")
        if dataset.outputs > (4 if dataset.d == 2 else 1):
            raise ValueError(
                f"the plane shows up to 4 classes and a line 2; got {dataset.outputs} classes on "
                f"{dataset.d} coordinate(s). Leave some classes out."
            )
        self.edit(dataset)

    def _take(self, dataset: Dataset) -> None:
        """Show `dataset`; a network in training goes on from where it is, on the new points."""
        old, train = self.now, self.now.train
        stage: Stage = "train" if old.aimed else old.stage
        if old.aimed:
            self.running = False
            self.message = "The points changed; the attacked weights belong to the old ones."
        if train is not None and (train.net.d, train.net.outputs) == (dataset.d, dataset.outputs):
            before, train = train.net, training.refresh(dataset, train, self.train_config)
            if not torch.equal(before.theta, train.net.theta):
                self.message = REVIVED
        elif train is not None:
            if train.net.outputs != dataset.outputs:
                self.message = CLASSES_CHANGED
            train, stage, self.running = None, "draw", False
            self.branch.train, self.branch.attack = Timeline(), Timeline()
        self._fit(dataset)
        self.show(
            dataset=dataset, train=train, stage=stage, certificate=None, status=Status.RUNNING
        )

    # --- running ----------------------------------------------------------------------------
    def go(self, stage: Stage) -> None:
        """Turn to a stage; the attack begins anew when the weights are not those attacked."""
        now = self.now
        if stage == now.stage:
            return
        self.running = False
        if stage == "train" and now.train is None:
            self.begin_training()
        elif stage not in BEFORE and (now.train is None or now.attacked is not now.train.net):
            self.take_target()
        held = self.now.explained
        if stage == "explain" and (held is None or held.target is not self.now.target):
            self.begin_explaining()
        if stage == "landscape":
            self.begin_walking()
        self.show(stage=stage, status=Status.RUNNING)
        if stage == "attack" and self.now.attack is None:
            self.restart_attack()
        if self.now.aimed and self.now.truth is not None and self.now.truth is not now.dataset:
            self.message = OLD_POINTS.format(self.now.truth.n)

    def begin_training(self, net: Network | None = None) -> None:
        """Start training at t = 0 from the session's seed, or from `net`."""
        dataset = self.now.dataset
        if not dataset.n:
            raise ValueError("No points yet: click on the plane, or take a preset.")
        generator = torch.Generator().manual_seed(self.seed)
        state = training.init(dataset, self.train_config, generator, net)
        self.branch.train, self.branch.attack = Timeline(), Timeline()
        self.branch.train.append(state, numbers)
        fresh = {"certificate": None, "attacked": None, "target": None, "truth": None}
        self.show(stage="train", train=state, attack=None, scores=None, verdict=None,
                  status=Status.RUNNING, **fresh)  # fmt: skip
        self.assess()

    def jump_to_exact(self, exact: Exact | None = None) -> None:
        """Take the exact maximum-margin network (two layers; 1-D and 2-D), solved here or given."""
        dataset = self.now.dataset
        exact = exact or maximum_margin(dataset.x, dataset.y)
        self.running = False
        self.begin_training(exact.net)
        if not exact.polished:
            self.message = exact.sentence

    def reset(self) -> None:
        """Back to t = 0 of the present stage, with the same seed."""
        self.running = False
        if self.frame.stage == "attack":
            self.restart_attack()
        elif not self.frame.aimed:
            self.begin_training()

    def reseed(self) -> None:
        """Back to t = 0 of the present stage, with the next seed."""
        self.seed += 1
        self.reset()

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - fields of the configs
        """Change settings of the present stage: the attack starts anew, training goes on.

        Settings of the architecture or the initialisation start training anew.
        """
        if self.now.stage == "attack":
            self.attack_config = replace(self.attack_config, **changes)
            self.running = False
            self.restart_attack()
            return
        self.train_config = replace(self.train_config, **changes)
        train = self.now.train
        if train is None:
            return
        if changes.keys() & BIRTH:
            self.running = False
            self.begin_training()
        elif "loss" in changes:
            same = replace(self.train_config, revive=False)
            self.show(train=training.refresh(self.now.dataset, train, same), status=Status.RUNNING)
        else:
            self.show(status=Status.RUNNING)

    def advance(self, seconds: float = float("inf"), steps: int = 10**9) -> int:
        """Take steps of the present stage until time, number or run is over. -> steps taken.

        The new state is `now`; it comes on screen with the next `show`.
        """
        now, begun, taken = self.now, perf_counter(), 0
        attack = now.stage == "attack"
        engine: Any = self.entry if attack else training
        target: Any = now.target if attack else now.dataset
        state: Any = now.attack if attack else now.train
        config: Any = self.attack_config if attack else self.train_config
        if state is None or (now.aimed and not attack):
            return 0
        line = self.timeline
        status = engine.terminate(state, config)
        while not status.over and taken < steps and perf_counter() - begun < seconds:
            state = engine.step(target, state, config)
            status = engine.terminate(state, config)
            line.append(state, numbers)
            taken += 1
        self._pending.update({"attack" if attack else "train": state, "status": status})
        return taken

    def step(self, n: int = 1) -> None:
        """Pause, and take n steps."""
        self._pause_in_run()
        self.advance(steps=n)
        self.assess()

    def _pause_in_run(self) -> None:
        """Pause, with a run there to go on with."""
        self.running = False
        if not self.now.aimed and self.now.train is None:
            self.begin_training()
        if self.now.stage == "draw":
            self.show(stage="train")

    def go_on(self, n: int) -> None:
        """Take n steps: at once where that is quick, else as a run that pauses by itself."""
        self._pause_in_run()
        taken = self.advance(seconds=AT_ONCE_S, steps=n)
        self.assess()
        now = self.now
        if now.state is not None and taken < n and not now.status.over:
            self.stop_at, self.running = now.state.t + n - taken, True
