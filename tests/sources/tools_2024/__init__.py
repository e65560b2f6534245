"""The samples of "codecompanion-tools.txt" of November 2024, each run.

Each sample has the line of the document that it begins at. Names and literals are the document's. Tables are
dictionaries and lists, and ``xml2lua.toXml`` is ``to_xml``.
"""
