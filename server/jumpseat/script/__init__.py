"""Play scripts of JSON-RPC messages against any server and report where it deviates.

From other packages of the server, only the scripted model is imported.
"""
