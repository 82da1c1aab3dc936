"""What a page says of an error that is nobody's refusal."""

from __future__ import annotations

NO_MEMORY = (
    "This needs more memory than a visitor has here. Nothing else is lost: use fewer points, "
    "neurons, candidates or starts, or press Reset."
)


def failure(error: Exception) -> str:
    """Return the sentence on an error."""
    # torch raises a RuntimeError of these words where NumPy raises a MemoryError.
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return NO_MEMORY
    return f"{type(error).__name__}: {error}"


def save_failure(error: Exception) -> str:
    """Return the sentence on a picture that could not be made."""
    if isinstance(error, ImportError):
        name = (error.name or "a package").partition(".")[0]
        return f"This needs {name}: pip install {name}. PNG and SVG need nothing."
    return f"It could not be made: {failure(error)}"
