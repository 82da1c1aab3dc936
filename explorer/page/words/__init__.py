"""Sentences of the page, as functions of what they speak of."""
