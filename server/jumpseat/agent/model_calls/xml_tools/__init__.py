"""Tool calls as XML in the text of an answer, for models that cannot call functions.

``prompt.py`` describes the tools and converts earlier calls and results to text, ``scanner.py`` finds the blocks in
a streamed answer, ``reader.py`` parses a block, ``arguments.py`` converts its elements to arguments, ``schemas.py``
interprets JSON Schemas for both, and ``model.py`` is the model that combines them, so that loop, orchestrator and
log see ordinary tool calls.
"""
