"""The engine: torch, numpy and scipy; it never knows that it is watched."""
