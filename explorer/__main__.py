"""`python -m explorer` is the command `margin-explorer`."""

from explorer.cli import main

main()
