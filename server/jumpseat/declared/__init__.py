"""What declarations of adapters and of tools have in common: where values come from, and how files are read."""
