"""Tool calls as XML in the text of an answer, for models that cannot call functions.

``prompt.py`` tells the model of its tools and puts calls and results of the past into words, ``scanner.py`` finds
the blocks in an answer while it comes, ``reader.py`` reads one, ``arguments.py`` makes arguments of what stands in
it, ``schemas.py`` is what these know of JSON Schemas, and ``model.py`` is the model that does all this, so that
loop, orchestrator and log see calls like any others.
"""
