"""Draw a dataset: the commands, panels and words of one stage."""
