"""A list beside a chart: it invites, loads what is chosen, and not what the page sets."""

from __future__ import annotations

from explorer.page.controls.pick import Pick

NONE = "choose a trial …"


def test_it_invites_until_something_is_chosen_and_loads_that_alone() -> None:
    loaded: list[int] = []
    pick = Pick("trial", "The trials", loaded.append)
    assert pick.list.label == NONE
    pick.fill([("first", 0), ("second", 1)], None)
    assert pick.list.label == NONE
    pick.choose(1)
    assert pick.list.label == "second" and not loaded
    pick.list.value = 0
    assert loaded == [0]
    pick.fill([("first", 0)], 0)
    assert pick.list.label == "first"
    pick.fill([], 0)
    assert pick.list.label == NONE and loaded == [0]
