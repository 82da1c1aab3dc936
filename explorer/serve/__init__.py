"""The server: Voila's settings, its guard, and the process that runs it."""
