"""Whether pages can open a link: what a class is given is read here first, in a process of its own.

python -m explorer.page.apps.scene < link        prints why they cannot, or nothing
"""

from __future__ import annotations

import sys

from explorer.page.lessons import file
from explorer.page.sharing.files import check_room
from explorer.page.stages.train import commands as train
from explorer.research.game import is_challenge, read_challenge
from explorer.research.state import read_link


def check_scene(link: str) -> None:
    """ValueError where a page would refuse the link of a run, a lesson or a challenge."""
    if is_challenge(link):
        train.check_shown(read_challenge(link).net)
    elif file.is_link(link):
        file.read_link(link)
    else:
        check_room(read_link(link))


if __name__ == "__main__":
    try:
        check_scene(sys.stdin.read())
    except ValueError as refused:
        print(refused)
