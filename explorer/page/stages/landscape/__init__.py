"""Mix the start and see the energy: the commands, panels and words of one stage."""
