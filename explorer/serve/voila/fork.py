"""How a kernel starts: forked from the warm process where there is one, else as Jupyter does it.

voila.py loads this file by its path and names it to Jupyter.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Bool, Int

from explorer.serve import warm
from explorer.serve.warm import Forked, ForkError

NAME = "margin-explorer"


class ForkProvisioner(LocalProvisioner):
    """Starts a kernel by forking; one that is no Python kernel of ours starts as ever."""

    memory = Int(0, config=True, help="Bytes that a kernel may take of its own; 0: no limit.")
    niceness = Int(0, config=True, help="How much kernels stand back behind the server.")
    one_core = Bool(False, config=True, help="Keep each kernel on one core.")
    on_core: ClassVar[Counter[int]] = Counter()  # how many living kernels each core has
    core: int | None = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Start it, and return how to reach it."""
        server = warm.current
        if server is None or cmd[:3] != [sys.executable, *warm.LAUNCHER]:
            return await super().launch_kernel(cmd, **kwargs)
        request = {
            "argv": cmd[3:],
            "env": dict(kwargs.get("env") or os.environ),
            "cwd": kwargs.get("cwd"),
            "memory": self.memory,
            "core": self._take_core(),
            "niceness": self.niceness,
        }
        try:
            self.process = Forked(await asyncio.to_thread(server.fork, request))
        except ForkError as error:
            server.say_once(error)
            self._leave_core()
            return await super().launch_kernel(cmd, **kwargs)
        self.pid = self.pgid = self.process.pid
        self.cwd = kwargs.get("cwd")
        return self.connection_info

    def _take_core(self) -> int | None:
        """Return the core with the fewest kernels, or None where they may roam."""
        if self.one_core:
            self.core = min(os.sched_getaffinity(0), key=lambda core: self.on_core[core])
            self.on_core[self.core] += 1
        return self.core

    def _leave_core(self) -> None:
        """Give the place on the core to another."""
        if self.core is not None:
            self.on_core[self.core] -= 1
            self.core = None

    async def cleanup(self, restart: bool = False) -> None:
        """Leave nothing behind."""
        self._leave_core()
        await super().cleanup(restart)


def register() -> None:
    """Make the name known to Jupyter, without an installed package's entry point."""
    entry = EntryPoint(NAME, f"{__name__}:ForkProvisioner", KernelProvisionerFactory.GROUP_NAME)
    KernelProvisionerFactory.provisioners[NAME] = entry
