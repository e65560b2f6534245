"""Editors in a cluster: their sessions may be at any replica.

The editor's replica (:mod:`.relay`) sends its requests to the owners of the sessions, which may be this replica
itself. There, a guest (:mod:`.owner`) stands for the editor: it serves the requests as a connection of an editor
does, and its notifications and questions go back the same way.
"""
