"""What the stages after training hold, and what a session can do in each."""
