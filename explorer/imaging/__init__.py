"""Real images: their files, networks trained on them, attacks, sheets of pictures, the page."""
