"""The landscape of all starts: a triangle of energies with a handle, and attacks from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array, Arrays
from explorer.engine.energy.landscape import (
    CORNERS,
    PATHS,
    THROUGH,
    Weights,
    between_places,
    path,
    read_lattice,
)
from explorer.engine.energy.starts import mix_from_weights
from explorer.engine.known import knowledge_of
from explorer.engine.progress import Progress
from explorer.engine.roster import DEFAULT, ROSTER, by_key
from explorer.engine.settings import setting_of
from explorer.page import play, prior
from explorer.page.aim import passed_by
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row, choices
from explorer.page.controls.settings import item_of
from explorer.page.frame import Frame, Handle, Passed, Stage
from explorer.page.job import Job, JobState
from explorer.page.panels.base import Panel
from explorer.page.stages.landscape import census_words, words
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.census_box import CensusBox
from explorer.page.stages.landscape.energy_words import WAY, mark_row
from explorer.page.stages.landscape.runs_box import RunsBox
from explorer.page.stages.landscape.start_energies import StartEnergies
from explorer.page.view.canvases import StripView, TriangleView
from explorer.research.grid import Grid, grid_attacks
from explorer.research.grid.ages import COARSE, Age, landscape_ages
from explorer.research.grid.landscape import Key, Runs, good_up_to, level_states
from explorer.research.pictures.shades import NOISE, SHADING, start_shades, start_top

HERE_TIP = "Run the attack from the handle: its trail rolls over the triangle"
FILLS = choices(
    ("start", "start"), ("end", "end"), ("valleys", "basins"),
    tips=("Colours by the energy of the start", "of the end of the runs",
          "by the end that a census finds below each start"),
)  # fmt: skip
SAMPLES = 60  # of a run from the handle, for its trail and its timeline; arbitrary


class StartsPanel(Panel):
    """The triangle with what is read at its handle, the profile, and the buttons that attack."""

    stages = ("landscape",)
    look = ("mx-starts-box",)  # a row of buttons and two cards

    def build(self) -> None:
        """The buttons, card 1, card 2; what is folded is built when it is opened."""
        self.energies = StartEnergies(self._on_energies, self._on_energies)
        self.attack_job = Ask(self)
        self.ages_job = Ask(self, self._landscape)
        self.ages: tuple[Age, ...] = ()  # that `ages_job` has found so far
        self.census = CensusBox(self, self._on_census, self.attack_job.cancel)
        self._shown: tuple[Any, ...] = ()  # what the triangle's frame was made of
        self._passed: Handle | None = None  # in the frame before, where a drag passed it
        self.runs = RunsBox(self, self.command, None, self._take, **self._settings())
        self._cards()
        self._buttons()
        for job in self._jobs:
            job.observe(self._tell_work)
        parts = [self.buttons, self.card, self.profile]
        self.widget = self.whole = w.VBox(parts, _dom_classes=["mx-starts"])

    def _settings(self) -> dict[str, Item]:
        """Return the attack that starts here, its candidates, and its first multipliers."""
        titles = choices(*((ROSTER[key].title, key) for key in grid_attacks()))
        set_ = partial(self.do, play.configure, self.session)
        begin = choices(("fitted", "fitted"), ("drawn", "drawn"))
        knows = setting_of(ROSTER[DEFAULT].config, "knows")
        return {
            "attack": Item("select", "attack", "Which attack starts here", None, titles,
                           self._on_attack),
            "m": Item("number", "candidates", words.CANDIDATES_TIP, 2, (), lambda m: set_(m=m),
                      low=2, high=400, whole=True),
            "first": Item("select", "first λ", words.FIRST_TIP, "fitted", begin,
                          partial(self.do, landscape.choose_multipliers, self.session)),
            "knows": item_of(knows, lambda value: self.do(prior.choose, self.session, value)),
            "colours": Item("select", "colours", words.COLOURS_TIP, "log", choices(*words.COLOURS),
                            lambda _: self._draw_fill()),
        }  # fmt: skip

    def _cards(self) -> None:
        self.view = TriangleView(self.session.together, label=words.LABEL)
        self.view.on("handle", self._on_handle)
        self.view.on("rest", self._on_rest)
        self.view.on("ball", self._on_ball)
        self.view.on("tilt", self._on_tilt)
        self.aside = Row(
            ("mx-starts-aside",),
            title=Item("words", value=""),
            share=Item("bar", tip="Share of the map computed", job=self.energies.job),
            fill=Item("segments", "Energies", value="start", options=FILLS[:2],
                      call=self._on_fill),
            ends=replace(self.census.pick, hidden=True),
            read=Item("words", value=""), scale=Item("words", value=""),
            counts=Item("words", value=""),
        )  # fmt: skip
        body = w.Box([self.view, self.aside], _dom_classes=["mx-starts-body"])
        self.card = w.VBox([body], _dom_classes=["mx-card", "mx-starts-main"])
        ways = choices(
            ("noise", "noise"), ("unseen", "unseen"), ("edges", "edges"),
            tips=tuple(words.PROFILES[key] for key in ("noise", "unseen", "edges")),
        )  # fmt: skip
        self.path = Row(
            ("mx-starts-head",),
            title=Item("words", value=""),
            along=Item("segments", "Profile", value="noise", options=ways,
                       call=lambda _: self._draw_strip()),
        )  # fmt: skip
        self.strip = StripView(layout=w.Layout(height="78px", width="100%"))
        self.profile = w.VBox(
            [self.path, self.strip], _dom_classes=["mx-card", "mx-starts-profile"]
        )

    def _buttons(self) -> None:
        self.here = Row(
            go=Item("job", words.ATTACK_HERE, HERE_TIP, call=self.command(self._attack),
                    job=self.attack_job),
            share=Item("bar", tip="Share of the run", job=self.attack_job),
        )  # fmt: skip
        self.way = Row(
            on=Item("button", words.ON["explain"], filled=True, hidden=True,
                    call=self.command(lambda: play.turn(self.session, self._next))),
        )  # fmt: skip
        self.further = Row(
            more=Item("button", "Runs", "How many places, how long, and the runs as files",
                      value=False, call=lambda _: self.render(self.session.frame)),
        )  # fmt: skip
        rows = [self.way, self.runs.go, self.here, self.census.go, self.further]
        self.buttons = w.HBox(rows, _dom_classes=["mx-row"])

    def belongs(self, frame: Frame) -> bool:
        """Return whether all points of a start move."""
        return super().belongs(frame) and frame.map_kind == "starts"

    # --- the hand -----------------------------------------------------------------------------
    def _on_handle(self, weights: Weights) -> None:
        self.energies.hand()
        self.attack_job.cancel()
        self._show_starts()
        self.do(landscape.place_handle, self.session, weights, self.view.dragged)

    def _on_rest(self) -> None:
        """Make the energy exact where a drag has come to rest."""
        held = self.session.frame.starts
        if held is not None and held.rough:
            self.do(landscape.place_handle, self.session, held.weights)

    def _landscape(self) -> object:
        """Return what the energies on screen are of."""
        held = self.session.frame.starts
        return None if held is None else held.landscape

    def _on_tilt(self, tilted: bool) -> None:
        if tilted:
            self._shown = ()
            self._draw_fill()

    def _ask_ages(self) -> None:
        """Compute, for the slider of the relief, the energies at other steps of this training."""
        now, job = self.session.frame, self.ages_job
        if now.starts is None or job.of is self._landscape():
            return
        of, plan = now.starts.problem.of, now.training.plan
        self.ages = ()
        if plan is not None and now.truth is not None and by_key(of.attack).own is None:
            job.begin(lambda progress: landscape_ages(of, plan, progress=progress), self._age)

    def _age(self, made: tuple[Age, ...]) -> None:
        self.ages = made
        self._shown = ()
        self._draw_fill()

    def _on_ball(self, index: int) -> None:
        if self.census.going is None:  # its dots stand for nothing that could be shown
            (self.census.press if self.shows_basins else self.runs.press)(index)

    @property
    def shows_basins(self) -> bool:
        """Return whether the triangle is coloured by the basins of a census."""
        known = self.census.found is not None and self.census.going is None
        return known and self.aside.value("fill") == "basins"

    def _on_fill(self, chosen: str) -> None:
        if chosen == "basins" and self.census.found is not None:
            landscape.note_census(self.session, self.census.found.census)
        elif chosen == "end" and not landscape.starts(self.session).line.states:
            self.runs.show_best()
        elif chosen != "basins":
            landscape.show_side(self.session, chosen == "end")
        self._draw_fill()

    def _show_starts(self) -> None:
        """Put the switch to the start: that is what the plane shows from now on."""
        if self.aside.value("fill") == "end":
            self.aside.put("fill", value="start")

    def _show_ends(self) -> None:
        """Put the switch to the end, where one is known: the plane shows one from now on."""
        if self._ends() is not None or landscape.starts(self.session).line.states:
            self.aside.put("fill", value="end")
        self._draw_fill()

    def _on_census(self, new: bool) -> None:
        """Show what a census has found: the basins at once, where it is a `new` one."""
        if new:
            self.aside.put("fill", value="basins")
        self._draw_fill()

    def _on_attack(self, name: str) -> None:
        self.do(play.choose_attack, self.session, name)
        self.render(self.session.frame)

    # --- the session --------------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the handle with its energy; ask for the map of these weights."""
        held = frame.starts
        before, self._passed = self._passed, held if frame.passing else None
        if self._passed and before and before.landscape is self._passed.landscape:
            self._show_place(self._passed)  # all else is as at the place before
            self._draw_strip()
            return
        self._set_attack(frame.attack.name)
        count = self.session.entry.candidate_count(self.session.attack_config)
        self.runs.settings.put("m", value=count, hidden=self.session.entry.own is not None)
        self.runs.settings.put("first", value=self.session.multipliers)
        hidden = knowledge_of(self.session.attack_config) is None
        self.runs.settings.put(
            "knows",
            options=choices(*prior.offers(frame)),
            value=prior.present(self.session),
            hidden=hidden,
        )
        self._ask_energies()
        self.census.drop_old(frame)
        if held is None:
            self._refuse(choose=frame.target is not None)
            self.runs.take(None)
            return
        runs = (self.runs.widget,) if self.further.value("more") else ()
        self.whole.children = (self.buttons, self.card, *runs, self.profile)
        self._show_place(held)
        self._lead()
        self._take()
        self._draw_fill()

    def _lead(self) -> None:
        """Fill the button that comes next: an attack, or the way on after one."""
        going = any(job.busy for job in self._jobs)
        rolling, counting = self.runs.busy, self.census.job.busy  # one of them at a time
        self.here.put("go", disabled=rolling or counting)
        self.runs.go.put("go", disabled=counting)
        self.census.go.put("go", disabled=rolling)
        ended = self.session.frame.is_answered and not going
        ended = ended and self.session.lesson is None  # which leads on itself
        fit = not ended and not going and not words.tells_nothing(self.session.frame)
        self.runs.go.put("go", filled=fit)  # they tell what the map does not
        on = self._next
        self.way.put("on", hidden=not ended, label=words.ON[on], tip=words.ON_TIP[on])

    @property
    def _jobs(self) -> tuple[Job, ...]:
        return self.attack_job, self.runs.job, self.census.job

    def _tell_work(self) -> None:
        """Let the bar at the foot show that attacks or a census go on, and the buttons follow."""
        going = (job for job in self._jobs if job.state is JobState.RUNNING)
        play.note_work(self.session, next(going, None))
        if self.belongs(self.session.frame):
            self._ask_energies()
        self._lead()

    def _ask_energies(self) -> None:
        """Ask for the map of the starts on screen; it gets no finer while an attack goes on."""
        held = self.session.frame.starts
        landscape = None if held is None else held.landscape
        self.energies.ask(landscape, later=any(job.busy for job in self._jobs))

    @property
    def _next(self) -> Stage:
        """Return the stage after this one: Explain, or what follows where its points are told."""
        frame = self.session.frame
        act = frame.asked
        told = act is not None and act.revealed and act.target is frame.target
        return "arena" if told else "explain"

    def _show_place(self, held: Handle) -> None:
        """Show where the handle is, and what is read there."""
        self.view.handle = held.weights
        self.view.say = words.handle_words(held.weights, held.energy, held.rough)
        when = "" if held.t == 0 else "now" if held.claims is None else "at the end"
        read = words.readout(held.weights, held.energy, when, held.rough)
        form = "" if held.energies is None else words.readout_form(rough=True)
        self.aside.put("read", value=read, form=form)

    def _refuse(self, choose: bool) -> None:
        """Offer the other attacks; the headline says why there are no starts."""
        self.refusal.put("attack", hidden=not choose)
        self.whole.children = (self.refusal,) if choose else ()

    @cached_property
    def refusal(self) -> Row:
        """Return the other attacks, where there are no starts."""
        return Row(attack=self.runs.settings.items["attack"])

    def _set_attack(self, name: str) -> None:
        for row in (self.runs.settings, self.refusal):
            row.put("attack", value=name)

    def _take(self) -> None:
        """Take up what is known of the runs on screen."""
        held = self.session.frame.starts
        if held is None:
            return
        of = self._of()
        if replace(held.problem.of, side=of.side) == of:  # else its energies are of other settings
            self.runs.take(of, held.landscape.measure)

    def _of(self) -> Grid:
        return landscape.problem(self.session, self.runs.setting("side"))

    # --- what is drawn --------------------------------------------------------------------------
    def _on_energies(self) -> None:
        """Draw the map; the headline tells what the newest complete one shows."""
        held = self.session.frame.starts
        if held is not None:
            values = self.energies.values if self.energies.complete else held.energies
            if values is not None:  # no act of a hand: what the page says stays
                landscape.know(self.session, values, finest=self.energies.finest)
        self._draw_fill()

    def _ends(self) -> Array | None:
        """Energies at the end of the runs on their lattice, or None where no run has one."""
        found = self.runs.found
        made = None if found is None or not found.rows else found.ends()
        return made if made is not None and np.isfinite(made).any() else None

    def _draw_fill(self) -> None:
        """Draw map and runs, unless the browser has them; then the profile."""
        held = self.session.frame.starts
        if held is None:
            return
        ends, values = self._ends(), self.energies.values
        basins = self.shows_basins
        counted = self.census.found is not None
        ran = ends is not None or (bool(held.line.states) and not self.attack_job.busy)
        fills = FILLS[:1] + FILLS[1:2] * (ran or not counted) + FILLS[2:] * counted
        if self.aside.value("fill") == "basins" and not counted:
            self.aside.put("fill", value="start")
        self.aside.put("fill", options=fills, hidden=not ran and not counted)
        chosen = self.aside.value("fill")
        self.aside.put("ends", hidden=not basins)
        for name in ("scale", "read"):
            self.aside.put(name, hidden=basins)
        at_end = chosen == "end" and ends is not None
        filled = ends if at_end else values
        colours = self.runs.setting("colours")
        when = words.AT_END if at_end else words.AT_START
        own = words.unit(held.problem.of.attack, colours, scaled=True)
        unit = f"{when}; {own}" if own else when
        title = words.UNEXPLAINED
        if held.t and not at_end:
            unit = words.OF_START
        if basins:
            title, unit, filled = census_words.FILLED, census_words.UNIT, None
        self.aside.put("title", value=words.heading(title, unit, narrow=True))
        found = self.runs.found
        rolled = (0, 0)
        if found is not None:
            rolled = len(found.rows), sum(len(t.places) for t in list(found.rolling.values()))
        shown = (
            values, held.energies, chosen, rolled, len(held.trail_so_far), id(found), colours,
            id(self.census.found), self.census.going, held.end,
        )  # fmt: skip
        before = self._shown
        same = before and all(a is b for a, b in zip(shown[:2], before[:2], strict=True))
        if not same or shown[2:] != before[2:]:
            self._shown = shown
            self._send(held, filled)
        self._draw_strip()

    def _send(self, held: Handle, filled: Array | None) -> None:
        if self.shows_basins:
            self._send_basins(held)
            return
        if self.census.going is not None:
            arrays = self.census.arrays()
        else:
            arrays = self.runs.arrays([list(one.place) for one in held.trail_so_far])
        self.view.energies = filled
        if held.energies is not None:
            arrays["map"] = held.energies
        aged: dict[str, Any] = {}
        sea = 0
        if filled is not None:
            colours = self.runs.setting("colours")
            arrays["fill"] = start_shades(filled, colours)
            if held.energies is not None:
                own = by_key(held.problem.of.attack).own is not None
                level = good_up_to(float(held.energies[0, -1]), own)
                sea = int(start_shades(np.append(filled, level), colours)[-1])
            scale = words.scale(start_top(filled), colours, SHADING)
            self.aside.put("scale", value=scale)
            if self.view.tilted:
                self._ask_ages()
            if filled is self.energies.values and colours != "rank" and self.ages:
                arrays["ages"], aged = self._all_ages(filled, colours)
            elif self.ages_job.busy:
                aged = {"names": [words.AGES_COMING]}
        self.view.show(arrays, sea=sea, **aged)
        counts = [] if self.census.going else self.runs.counts()
        rolling = 0 if self.runs.found is None or not counts else len(self.runs.found.rolling)
        said = mark_row(*WAY, words.WAY_OF_A_RUN) if len(held.trail_so_far) > 1 else ""
        if sum(counts) + rolling:
            said = words.ends(counts, rolling, self.runs.busy)
        self.aside.put("counts", value=said)

    def _all_ages(self, filled: Array, colours: str) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Return the landscapes of all ages, that on screen among them, and what they are."""
        now = self.session.frame.training
        exact = now.plan is not None and now.plan.exact
        here = Age(None if exact else now.t, filled)
        known = [one for one in self.ages if one.steps != here.steps]
        ages = sorted([*known, here], key=lambda one: (one.steps is None, one.steps or 0))
        side = max((len(one.energies) for one in known), default=COARSE)
        drawn = np.stack(
            [start_shades(between_places(one.energies, side), colours) for one in ages]
        )
        names = [words.age(one.steps) for one in ages]
        return drawn, {"names": names, "present": ages.index(here)}

    def _send_basins(self, held: Handle) -> None:
        found = self.census.found
        assert found is not None
        self.view.energies = None
        self.view.show(self.census.arrays(), chosen=held.end)
        self.view.rows = census_words.rows(found.census)
        chosen = held.end if held.end >= 0 else None
        self.aside.put("ends", options=self.census.options(), value=chosen)
        self.aside.put("counts", value=census_words.legend(found.census))

    def _draw_strip(self) -> None:
        """Draw the profile: at the start, and after the attack where runs are known."""
        held, values = self.session.frame.starts, self.energies.values
        if held is None:
            return
        kind = self.path.value("along")
        line = path(kind, held.weights)
        of_end = held.end >= 0  # the energy is that of an end, and not of the handle
        now = held.landscape.energy(held.weights) if of_end else held.energy
        here = held.trail[0].energy if held.trail else now
        arrays: Arrays = {}
        top = max(here, NOISE)
        for name, behind, known in (("start", "map", values), ("end", "reached", self._ends())):
            if known is None:
                continue
            arrays[behind] = known  # the browser reads it while a hand holds the start
            read = read_lattice(known, line.places)
            if np.isfinite(read).any():
                top = max(top, float(np.nanmax(read)))
                arrays[name] = np.column_stack([line.along, read]).astype(np.float32)
        passed = line.handle is not None
        self.path.put("title", value=words.profile(kind, "end" in arrays, passed))
        self.strip.label = words.profile_label(kind, here, now, passed, held.rough)
        self.strip.show(
            arrays, marks=[list(mark) for mark in line.marks],
            handle=[line.handle, now] if passed else None,
            fall=[one.energy for one in held.trail_so_far], top=top,
            path=[CORNERS[name] for name in PATHS[kind]] if kind in THROUGH else [],
        )  # fmt: skip

    # --- attacks --------------------------------------------------------------------------------
    def _attack(self) -> None:
        """Run the attack from the handle, beside the page."""
        held = landscape.starts(self.session)
        play.pause(self.session)
        self._show_starts()
        landscape.place_handle(self.session, held.weights)  # a trail of its own
        mix = mix_from_weights(*held.weights)
        config = held.problem.of.settings_at(mix[1])
        every = max(1, config.steps // SAMPLES)

        def work(progress: Progress) -> Iterator[tuple[Any, Passed]]:
            for state, over in level_states(held.problem, mix, every, held.landscape.measure):
                progress(min(1.0, state.t / max(config.steps, 1)))
                if over or state.t % every == 0:
                    yield state, passed_by(held, state, over)

        def follow(state: Any, passed: Passed) -> None:  # noqa: ANN401 - of any attack
            self.do(landscape.follow_run, self.session, state, passed)

        def end() -> None:
            self._lead()
            done = self.attack_job.state is JobState.DONE
            if done or len(landscape.starts(self.session).trail) > 1:
                self._show_ends()

        self.attack_job.begin(work, lambda part: follow(*part), end, lambda: self._is_gone(held))

    def _is_gone(self, held: Handle) -> bool:
        """Return whether the handle or the weights are others than those of the run under way."""
        now = self.session.frame.starts
        return now is None or now.landscape is not held.landscape or now.weights != held.weights

    # --- what the runs ask of their page --------------------------------------------------------
    def problem(self) -> Grid:
        """Return the runs of the attack on screen, on the weights of the page."""
        landscape.starts(self.session)
        play.pause(self.session)
        self.attack_job.cancel()
        self.aside.put("fill", value="start")  # runs are drawn on energies, from their starts
        landscape.place_handle(self.session, landscape.starts(self.session).weights)
        return self._of()

    def draw_runs(self) -> None:
        """Draw the runs on the triangle, and their ends in the profile."""
        if self.widget is not None and self.session.frame.starts is not None:
            landscape.note_runs(self.session, self.runs.found, self.runs.arrivals())
            self._draw_fill()

    def show(self, found: Runs, key: Key) -> str:
        """Put the run on the plane, with its time line."""
        states, mix = found.states[key], (key[1], key[2])
        landscape.show_run(self.session, mix, states)
        self._show_ends()
        return words.loaded_run(mix, states[-1].t)

    def best(self, found: Runs) -> Key | None:
        """Put the run on the plane that recovers most, under the headline of all."""
        key = found.best(landscape.starts(self.session).weights)
        if key is not None:
            landscape.show_run(self.session, (key[1], key[2]), found.states[key], best=True)
            self._show_ends()
        return key

    # --- out of sight ---------------------------------------------------------------------------
    def retire(self, frame: Frame) -> None:
        """Let runs go on out of sight, but end them if weights or points have changed."""
        self.energies.rest()
        self.attack_job.cancel()
        if self.ages_job.busy:
            self.ages_job.cancel()
            self.ages_job.of, self._shown = None, ()  # asked anew where one comes back
        found = self.runs.found
        if found is None or not self.runs.busy or self.runs.ending:
            return
        same = found.of.target is frame.target and found.of.truth is frame.dataset
        if not same or not frame.newest:
            self.runs.cancel()
            self.tell(words.CHANGED)

    def end(self) -> None:
        """End the work with the page."""
        self.energies.close()
        self.runs.job.close()
