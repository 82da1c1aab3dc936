"""One view each. A panel is given the session and nothing else."""
