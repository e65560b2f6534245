"""``jumpseat sessions``: look at stored sessions, export and delete them, without a server."""
