"""Make the recordings of the story: nine scenes, from seeds.

    python scripts/story.py

Each scene trains, attacks and proves what it shows (explorer/page/recording/story.py), and numbers
in its words are taken from its frames. Run it again after a change of training, attacks,
certificates or headlines; the words alone are read when a page of it is made.
"""

from __future__ import annotations

import json
from time import perf_counter

from explorer.engine.threads import limit_threads
from explorer.page.recording.story import KEPT, record


def main() -> None:
    limit_threads()  # as a page does: sums of several threads end in other last bits
    kept, begun = {}, perf_counter()
    for key, made in record():
        kept[key] = made
        size = len(json.dumps(made).encode()) / 1000
        print(f"{key:10} {size:4.0f} kB  {perf_counter() - begun:3.0f} s  {made['facts']}")
    KEPT.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{KEPT.name}  {KEPT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
