"""Train a network on it: the commands, panels and words of one stage."""
