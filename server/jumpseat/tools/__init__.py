"""Tools of every kind: built in, declared, of clients; and the orchestrator that offers and runs them.

The modules of this folder are what all kinds share. The folders import them, never the other way round.
"""
