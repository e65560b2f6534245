"""The MCP host: servers of the Model Context Protocol, whose tools a session offers to its model.

``catalogue.py`` finds the servers of a session, ``host.py`` runs them, ``connection.py`` runs one of them. Only
``connection.py`` and the modules below it import the ``mcp`` package, whose import takes 0.7 seconds: it is
imported in a thread, with the first session that has servers.
"""
