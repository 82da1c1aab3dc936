"""Play in a class: the commands, panels and words of one stage."""
