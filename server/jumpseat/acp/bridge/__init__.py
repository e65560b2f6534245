"""The bridge of ``jumpseat acp --connect``: an editor on stdio, and a server that speaks ACP over a network.

It knows of ACP only what a reconnect needs: the first request, and which sessions are open.
"""
