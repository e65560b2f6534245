"""Turn a conversation, of a stored session or between a live client and its server, into a script that passes."""
