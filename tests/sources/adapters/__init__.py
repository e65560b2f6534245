"""The samples of "Creating Adapters" (https://codecompanion.olimorris.dev/extending/adapters), each run.

Each sample has the line of the document that it begins at. Names and literals are the document's. Lists count from
0, ``nil`` is ``None``, ``pcall`` is ``try``, and ``utils`` is ``jumpseat.adapters.utilities``.
"""
