"""The second front door: the Agent Client Protocol, which editors speak, onto the same sessions.

One file per method or small namespace is in :mod:`jumpseat.acp.methods`; what is said about a session is translated
in :mod:`jumpseat.acp.translation.updates`. Sessions know nothing of either protocol.
"""
