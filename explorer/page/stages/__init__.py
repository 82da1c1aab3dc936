"""What a session can do in each stage."""
