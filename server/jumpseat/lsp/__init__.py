"""Language servers: their configuration and processes, and the diagnostics that changes of files bring.

Nothing of a session is loaded before the first change of a file that a server understands.
"""
