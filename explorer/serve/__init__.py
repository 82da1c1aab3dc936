"""The server: Voila's settings, its guard, and the process that runs it."""

import sys

TEACHER = "MARGIN_EXPLORER_TEACHER"  # the key of the teacher's page; read by voila.py
EVERYWHERE = ("", "0.0.0.0", "::")  # addresses to listen on that are all interfaces
COMPILING = (sys.executable, "-m", "explorer.engine.compiling")  # a program: here is no torch
