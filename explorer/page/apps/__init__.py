"""The pages as a whole: composition, and what happens when a control moves."""
