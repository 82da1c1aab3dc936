"""Lessons: a file of words and states, goals that the page checks, and the commands to walk one."""
