"""The page for browsers: its files, and the command that opens it."""
