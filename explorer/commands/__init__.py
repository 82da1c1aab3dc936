"""The verbs of the command line, one file per topic; `explorer.cli` lists them."""
