"""What the opening says while points are drawn, and the three marks of a first visit."""

DRAWN = (
    "Points of two classes are drawn",
    "On this circle each neighbour is of the other class, so every point is needed.",
)
# The selector of the part, and the words.
MARKS = (
    (
        ".mx-plane",
        "All happens on this plane. In 1 Draw, click to place points, or drag to spray them.",
    ),
    (".mx-action", "The filled button is always the next thing to do."),
    (".mx-tabs", "Six stages, from drawing to comparing attacks. Go back and forth as you like."),
)
