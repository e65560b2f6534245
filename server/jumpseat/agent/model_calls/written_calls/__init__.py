"""Calls that models write as text, in the forms that they were trained on.

A server with a parser for the model turns them into calls; these readers do the same for a server without one.
``forms/`` has a module for each family of models, ``reader.py`` reads a text for them, ``offered.py`` knows the
tools that can be called, and ``repair.py`` what may be wrong with a name or with arguments.
"""
