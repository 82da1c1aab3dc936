"""The server's process: starts what its kernels are forked from, then Voila.

python -m explorer.serve <what Voila is told>
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from explorer.serve import limits, log, warm

KERNEL = Path(__file__).with_name("voila") / "kernels" / "margin-explorer" / "kernel.json"


def end_with_parent() -> None:
    """Wait until the process that started us is gone, then end, and our kernels with us."""
    # Not through sys.stdin: a thread that holds its lock breaks the interpreter's shutdown.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run until told to end. The warm process imports while Voila is imported."""
    log.limit()
    limits.raise_files()
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        warm.current = warm.Warm(env=json.loads(KERNEL.read_text())["env"])
    except (warm.ForkError, OSError) as error:
        print(warm.WORDS.format(error), file=sys.stderr, flush=True)
    from voila.app import main as serve

    serve()


if __name__ == "__main__":
    main()
