"""Every verb of the command line once, as small as it goes, by the extra that it needs."""

from __future__ import annotations

from pathlib import Path

# Two points, and 400 steps of a network of 20 neurons.
LINK = (
    "mx1.ePnLKPMgE2BlAINq8iqYQVvck17blZTn6xbkZ-aVoFR56DUeWoVHzRrFaJBXKFSrUUwGR2UC8wEJxRNMy7AsmMDRYoA"
    "cVrAggHk7tSIxuQQlFaYBY7oYJT0UpRakAnN2EiQ9wBXmpVaUYAl7sDCyNSQUjIZmuIs2HUOcxaKhGbBIxa0TWCYqAAGkVH"
    "xgD6X3Q-gPUP6H_QB6KprL"
)
POINTS = "--preset two-points --widths 20 --steps 400"
TWO = Path(__file__).with_name("two_points.csv")
ROWS = "--set preset=blobs --set n=8 --set widths=16 --set steps=300"
ROWS = f"{ROWS} --set attack_config.steps=20 --set attack_config.m=8"

ARENA = "--executor threads --workers 1 --preset blobs --n 8 --widths 16 --steps 300"
ARENA = f"{ARENA} --seed 0 --fast --attacks kkt,hinge"

# In order: the first one writes what others open. Of the extras but `cli` each goes with `cli`.
RUNS: dict[str, tuple[str, ...]] = {
    "cli": (
        f"train {POINTS} --out run.safetensors",
        f"demo {POINTS} --m 6 --attack-steps 5 --out demo.png",
        "attack run.safetensors --m 6 --steps 5 --out attacked.safetensors",
        "show attacked.safetensors",
        "film attacked.safetensors --of attack --out attack.gif",
        "explain run.safetensors --out explained.png",
        "explain --experiment longer --preset blobs --n 6 --steps 50",
        "energy --preset moons --n 6 --size 5 --picture energy.png --out energy.csv",
        f"repeat {LINK} --out repeated.safetensors",
        "settings kkt",
        "univariate --preset alternating-line --n 6 --out univariate.png",
        "weight-decay --n 8 --m 6 --attack-steps 5",
        "grid --preset blobs --attack bilevel --side 2 --n 6 --set steps=2 --out grid.png",
        "bilevel --preset blobs --n 6 --set steps=2 --set width=3 --set mu=0.1",
        f"sweep --executor threads --workers 1 {ROWS} --out rows.jsonl",
        f"arena {ARENA} --out arena",
        "settings kkt",
        f"audit run.safetensors {TWO} --steps 5",
    ),
    "rates": ("membership --d 8 --trials 2 --width 20 --n 4 --test 20 --out membership",),
    "tune": (f"tune {POINTS} --trials 2 --restarts 2 --m 4 --trial-steps 4 --out front.png",),
    "images": ("digits --n 4 --widths 50 --steps 100 --attack-steps 5 --out digits.png",),
    "cluster": (f"sweep --executor dask --workers 1 {ROWS} --out dask.jsonl",),
}
