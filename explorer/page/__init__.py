"""One visitor's page: its state, its stages, and what they show."""
