"""Attack the weights: the commands, panels and words of one stage."""
