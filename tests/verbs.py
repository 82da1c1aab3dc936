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
        "export attacked.safetensors --out run.html",
        "explain run.safetensors --out explained.png",
        "explain --experiment longer --preset blobs --n 6 --steps 50",
        "energy --preset moons --n 6 --size 5 --picture energy.png --out energy.csv",
        "census --preset alternating-line --n 4 --starts 4",
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
    "images": (
        "digits --n 4 --widths 50 --steps 100 --attack-steps 5 --out digits.png",
        "convolution --points digits --n 4 --filters 20 --attack-steps 5 --out convolution.png",
    ),
    "cluster": (f"sweep --executor dask --workers 1 {ROWS} --out dask.jsonl",),
}

# Lines that end otherwise, in a folder with these files: with an exit code, and words on stderr.
FILES = {
    "bad.csv": "x1,x2,y\n0,zero,1\n",
    "empty.csv": "x1,x2,y\n",
    "clash.csv": "x1,x2,y\n0,0,1\n0,0,-1\n",
    "line.csv": "x1,y\n0.5,1\n-1,-1\n",
    "mine.csv": "x1,x2,y\n0.5,0.25,1\n-0.5,0,-1\n0,-1,-1\n",
    "five.toml": "table = 5\n",
    "three.toml": "attack_config = 3\n",
    "infinite.toml": "[table]\nlabel_noise = inf\n",
    "key.jsonl": '{"key":"abc"}\n',
    "file": "",  # no folder: nothing can be written below it
}
NET = "--preset two-points --widths 20 --steps 400"
REFUSED = (
    ("train --preset nothing", "no preset 'nothing'; there are"),
    ("train --widths ten", "100,100"),
    ("train --widths 0", "at least 1"),
    ("train --data absent.csv", "cannot read absent.csv"),
    ("train --device mps --preset moons", "mps"),
    ("train --data bad.csv", "bad.csv: line 2"),
    (f"train {NET} --out no/such/folder/run", "no/such/folder"),
    ("train --data empty.csv", "no points"),
    ("train --data clash.csv --method exact", "opposite labels"),
    ("train --train-set batch=abc", "batch must be a whole number or None; got 'abc'"),
    ("train --train-set all_biases=maybe", "must be True or False; got 'maybe'"),
    ("train --train-set colour=red", "'colour'"),
    ("demo --m 7", "Try 8"),
    ("demo --scenario nothing", "alternating circle"),
    ("demo --set lr_x=nan", "lr_x must be a finite number; got 'nan'"),
    (
        "demo --widths 20 --steps 400 --attack certified_places --train-set weight_decay=0.001",
        "weight decay",
    ),
    ("attack absent.safetensors", "cannot read"),
    ("attack absent.safetensors --device mps", "Take --device cpu"),
    ("show bad.csv", "bad.csv: no PyTorch"),
    ("film absent.safetensors", "cannot read"),
    ("film absent.safetensors --out a.mp4", "ffmpeg -i a.gif a.mp4"),
    ("export absent.safetensors", "cannot read"),
    ("export absent.safetensors --out a.pdf", "a.html"),
    ("export mx1.eJwDAAAAAAEthisalinkthatisdamagedandlong", "Copy it again"),
    ("sweep --set label_noise=nan", "label_noise must be a finite number; got 'nan'"),
    ("sweep --set attack_config=3", "attack_config must be settings by name"),
    ("sweep --set seed=[]", "the axis seed is empty"),
    ("sweep --set seed=4-2", "a range of seeds rises"),
    ("sweep --set sead=1 --out rows", "no setting 'sead'"),
    ("sweep --table three.toml --set attack_config.m=4", "attack_config.m; got 3"),
    ("sweep --table five.toml", "table = 5"),
    ("sweep --table infinite.toml", "label_noise must be a finite number; got inf"),
    ("sweep --out key.jsonl", "line 1 is not a row of a sweep"),
    ("sweep --scheduler tcp://x --out rows", "--scheduler belongs to"),
    ("sweep", "--out rows.jsonl"),
    ("sweep --set seed=0", "--out rows.jsonl"),
    ("sweep --fresh --csv rows.csv", "--out rows.jsonl"),
    ("arena --widths 100,abc", "--widths takes numbers such as 100,100; got '100,abc'"),
    ("arena --seed 3-1", "a range of seeds rises"),
    ("arena --seed x", "seeds are numbers and ranges"),
    ("arena --attacks spell", "no attack 'spell'"),
    ("arena --seeds 3-1", "seeds rises"),  # as the option was called once
    ("arena --seeds=3-1", "seeds rises"),
    ("grid --seeds 3-1", "seeds rises"),
    ("grid --seed a", "seeds are numbers and ranges"),
    ("grid --attack inversion", "attacks with a start"),
    ("grid --set steps", "NAME=VALUE"),
    ("grid --set lr_x=nan", "lr_x must be a finite number; got 'nan'"),
    ("grid --set m=3", "m must be even"),
    ("grid --images digits --preset xor", "--images takes the place of --preset"),
    ("grid --data mine.csv --n 5", "--data"),
    ("grid --data mine.csv --preset xor", "--data"),
    ("grid --data mine.csv --images digits", "--data"),
    ("grid key.jsonl", "key.jsonl"),
    ("grid --out p.xyz", "Try p.png"),
    ("bilevel --preset rings", "is one of"),
    ("bilevel --set width=wide", "width must be a whole number; got 'wide'"),
    ("bilevel --images mnist --noise 3", "has no --noise"),
    ("energy --preset moons --n 6 --point 9", "--point goes from 1 to 6"),
    ("energy --out map.txt", ".csv or .npz"),
    ("energy --picture p.xyz", "Try p.png"),
    ("energy --device mps", "Take --device cpu"),
    ("census --set mu=0.1", "weights that decay trains"),
    ("explain --out p.xyz", "Try p.png"),
    ("explain --device mps", "Take --device cpu"),
    ("tune --device mps", "Take --device cpu"),
    (f"tune {NET} --log a --out a", "one file"),
    ("univariate --device mps", "Take --device cpu"),
    ("sweep --out a --csv ./a", "one file"),
    ("membership --d no", "--d takes numbers and ranges"),
    ("membership --d 9:3", "holds no dimension"),
    ("membership --d 0", "holds no dimension"),
    ("membership --d 1:2:3:4", "--d takes numbers and ranges"),
    ("membership --labels component", "component"),
    ("digits --images cifar", "folder"),
    ("digits --images cifar --folder none", "no folder"),
    ("serve --port 99999 --no-open", "65535"),
    ("repeat nothing", "whole"),
    (f"repeat {LINK[:-9]}", "whole"),
    (f"train --data {LINK[:-9]}", "whole"),
)
USAGE = (
    "train --n many",
    "train --dtype int8",
    "fly",
    "attack",
    "grid --n 0",
    "census --starts 0",
    "attack x --starts 0",
)
FAILED = (("train --preset moons --steps 0", "after 0"),)
# Lines whose last word is a file that cannot be written: nothing runs before that is said.
UNWRITABLE = (
    f"demo {NET} --out", f"train {NET} --out", "univariate --out", "digits --out",
    f"tune {NET} --log", f"tune {NET} --out", "energy --picture", "explain --out",
    "explain --experiment longer --out", "grid --out", "grid --csv", "grid --rows",
    "bilevel --rows", "membership --out", "sweep --out", "sweep --out rows.jsonl --csv",
    "arena --out", "convolution --out",
)  # fmt: skip
# Lines with words of their tables, and with keys of their JSON. The networks need few steps.
TINY = "--set preset=blobs --set n=8 --set widths=16 --set steps=300"
TINY = f"{TINY} --set attack_config.steps=20 --set attack_config.m=8 --executor threads --workers 1"
SHOWN = (
    (f"demo {NET} --m 6 --attack-steps 5 --out p.png",
     "normalised margin, certificate, verdict, recovered within 0.03, p.png",
     "version, dataset, network, training, attack, picture, note"),
    ("demo --preset moons --n 9 --method exact --m 6 --attack-steps 5", "optimum, verdict", "note"),
    (f"train {NET} --out r", "normalised margin, run r", "run, before, training"),
    (f"sweep {TINY} --out rows.jsonl", "done 1, failed 0, rows rows.jsonl", "done, csv, messages"),
    ("settings kkt", "lr_x", "properties"),
    ("explain --data mine.csv", "cannot be split, over all explanations", "split, forced_mass"),
    (
        "census --preset alternating-circle --n 4 --method exact --starts 3 --passes",
        "distinct ends, hard, pass from the end", "basins, unseen, kinds, splits",
    ),
    ("energy --preset alternating-line --size 9 --picture c.png", "archetype", "picture, lowest"),
)  # fmt: skip
