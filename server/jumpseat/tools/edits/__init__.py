"""Edits of text: find the passage that a model means, despite small slips, and put the new text into its place.

Pure: nothing here reads a file or knows a tool.
"""
