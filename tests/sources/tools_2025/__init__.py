"""The samples of "Creating Tools" (https://codecompanion.olimorris.dev/extending/tools), each run.

Each sample has the line of the document that it begins at. Names and literals are the document's. Lists count from
0, ``nil`` is ``None``, ``tonumber`` is written out, and ``vim.notify`` is ``tools.notify``.
"""
