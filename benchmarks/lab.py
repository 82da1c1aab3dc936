"""JupyterLab on this machine alone, in an empty folder with some notebooks of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.serve import server as serve

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


@contextmanager
def lab_server(*names: str) -> Iterator[serve.Server]:
    """JupyterLab on loopback, with these notebooks in the folder `work` of the server's own."""
    folder = tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True)
    home = Path(folder.name)
    (home / "work").mkdir()
    for name in names:
        shutil.copy(NOTEBOOKS / name, home / "work")
    # Nobody's own settings, and nothing left behind in theirs.
    own = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "RUNTIME")}
    own |= {
        f"JUPYTERLAB_{name}_DIR": str(home / name.lower()) for name in ("SETTINGS", "WORKSPACES")
    }
    port = serve.free_port("127.0.0.1", 0)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
        *("--IdentityProvider.token=", "--ServerApp.password=", "--log-level=ERROR"),
        f"--ServerApp.root_dir={home / 'work'}",
        *("--LabApp.news_url=None", "--LabApp.extension_manager=readonly"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    process = subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"} | own, start_new_session=True
    )
    with serve.Server(f"http://127.0.0.1:{port}/", process, folder) as server:
        serve.wait_until_listening(process, "127.0.0.1", port)
        yield server
