"""The engine: torch, numpy, scipy, pydantic and numba; it never knows that it is watched."""
