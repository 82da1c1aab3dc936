"""Commands of each stage, as functions of a session; what all share is in `page.play`."""
