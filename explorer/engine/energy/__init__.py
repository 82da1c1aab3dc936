"""Energies of candidate sets: their maps, their starts, and questions to both."""
