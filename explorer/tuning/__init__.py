"""Settings of an attack from what an attacker can compute, and the file of a search."""
