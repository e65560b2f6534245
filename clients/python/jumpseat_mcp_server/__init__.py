"""``jumpseat mcp-server``: sessions as tools of the Model Context Protocol, for other agents.

The sessions are those of a server that this program starts, as a chat does; :mod:`jumpseat_client` reaches it.
"""
