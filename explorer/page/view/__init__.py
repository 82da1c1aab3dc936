"""Canvas views: each draws one frame from one message of numbers, and what the plane shows."""
