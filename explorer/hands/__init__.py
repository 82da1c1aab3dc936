"""What a hand on the plane means, stage by stage: pointer and keys become commands of a session."""
