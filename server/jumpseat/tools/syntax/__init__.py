"""Syntax errors that a change of a file brings, found by tree-sitter grammars and, for data, by exact parsers.

Pure: nothing here reads a file or knows a tool. The first change of a file in a language imports its grammar.
"""
