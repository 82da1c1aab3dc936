"""The verbs of the command line, one file per topic; `explorer.cli` offers them.

A topic's file ends in `VERBS`, its verbs with their functions, and stands in this folder: nothing
else names a verb. Names and help are read from the source, because an import takes seconds.
"""

from __future__ import annotations

import re
from pathlib import Path

FIRST = ("demo", "train", "attack", "audit", "show", "repeat", "film", "serve")  # in the help
TABLE = re.compile(r"^VERBS\b[^=\n]*= \{(.*?)\}", re.MULTILINE | re.DOTALL)
VERB = re.compile(r'"([\w-]+)": (\w+)')
# Options that had another name once, by the name of now.
RENAMED = {"--seeds": "--seed"}
READER_LEFT = 141  # 128 + SIGPIPE: what a shell says when a reader, such as `head`, has left


def _verbs() -> dict[str, tuple[str, str]]:
    """Return each verb's file here and its help: those of `FIRST` first, the others by name.

    The help is the first line of the docstring of the verb's function, which stands in that file.
    """
    found = {}
    for path in Path(__file__).parent.glob("[!_]*.py"):
        text = path.read_text(encoding="utf-8")
        table = TABLE.search(text)
        for verb, function in VERB.findall(table[1]) if table else ():
            help_of = re.search(rf'^def {function}\(.*?"""(.+?)(?:"""|\n)', text, re.M | re.S)
            found[verb] = path.stem, help_of[1] if help_of else ""
    order = [*FIRST, *sorted(found)]
    return {verb: found[verb] for verb in sorted(found, key=order.index)}


VERBS = _verbs()
