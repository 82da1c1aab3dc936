"""Files that a verb will write: a file that cannot be written is refused before the work."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from explorer.engine.files import spare_name


def check_files(*files: Path | None, make: bool = False) -> None:
    """Try to write each file, and leave it as it is; with `make`, make its folder first.

    Raises:
        ValueError: with the file that cannot be written, or that is named twice.
    """
    named = [path.resolve() for path in files if path is not None]
    if len(set(named)) < len(named):
        raise ValueError(
            f"two outputs would be one file, {named[0]}. Name another for one of them."
        )
    for path in files:
        if path is None:
            continue
        try:
            if make:
                path.parent.mkdir(parents=True, exist_ok=True)
            _try(path)
        except OSError as error:
            raise ValueError(
                f"cannot write {path} ({error.strerror}). Name a file in a folder that is there "
                "and that you may write to."
            ) from error


def _try(path: Path) -> None:
    if path.is_dir() or path.is_file():
        path.open("ab").close()
    if path.is_file() or not path.exists():  # else it is a device or a pipe
        beside = spare_name(path.resolve())
        beside.open("xb").close()
        beside.unlink()


def check_folder(folder: Path | None) -> None:
    """Make the folder, and try to write there. ValueError where that fails."""
    if folder is not None:
        check_files(folder / "rows.csv", make=True)


def check_pictures(*files: Path | None) -> None:
    """Check files as `check_files` does, and that a picture can be of the kind its name ends in."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    for path in files:
        if path is not None and path.suffix and path.suffix[1:].lower() not in kinds:
            raise ValueError(
                f"no picture can be written as {path.name}; its name may end in: "
                f"{', '.join(sorted(kinds))}. Try {path.with_suffix('.png').name}."
            )
    check_files(*files)


def set_aside(path: Path) -> Path | None:
    """Rename an existing file to the first free of name-1, name-2 ...; None if there is none."""
    if not path.exists():
        return None
    names = (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in count(1))
    free = next(name for name in names if not name.exists())
    return path.rename(free)
