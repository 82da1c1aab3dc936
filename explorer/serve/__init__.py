"""The server: Voila's settings, its guard, and the process that runs it."""

import sys

COMPILING = (sys.executable, "-m", "explorer.engine.compiling")  # a program: here is no torch
