"""The page on membership inference: its widgets, what they show, and rates with intervals."""
