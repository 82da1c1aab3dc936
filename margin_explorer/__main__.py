"""`python -m margin_explorer` is the command `margin-explorer`."""

from explorer.cli import main

if __name__ == "__main__":
    main()
