"""Hooks that are commands in files: their input and output, and running them."""
