"""Sentences of the page, as functions of numbers and states."""
