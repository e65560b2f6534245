"""Playing scripts of JSON-RPC messages with any server, and saying what it did wrong. It imports no other room
of the server than the scripted model's."""
