"""One file per attack. An attack sees a Target, never the truth."""
