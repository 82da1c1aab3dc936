"""The plane: what it shows of a frame, and what a hand does on it."""
