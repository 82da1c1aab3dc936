"""The engine: torch, numpy, scipy and pydantic; it never knows that it is watched."""
