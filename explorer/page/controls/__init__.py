"""The controls of the page: the kit that panels are built of, and what it does not draw itself."""
