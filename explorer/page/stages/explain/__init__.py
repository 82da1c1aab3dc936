"""Explain what is certain: the commands, panels and words of one stage."""
