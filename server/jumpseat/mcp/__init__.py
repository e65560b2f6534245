"""The MCP host: servers of the Model Context Protocol, whose tools a session offers to its model.

``catalogue.py`` finds the servers of a session, ``host.py`` runs them, ``connection.py`` is one of them. Only what
stands below ``connection.py`` imports the ``mcp`` package, which takes a fifth of a second: it is loaded with the
first session that has servers, in a thread.
"""
