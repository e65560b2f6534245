"""The Agent Client Protocol (ACP) of editors, on the same sessions as the Copilot protocol.

:mod:`jumpseat.acp.methods` has one file per method or small namespace, :mod:`jumpseat.acp.translation` converts
between events and ACP, and :mod:`jumpseat.acp.editor` has the state of one connection. Sessions know neither
protocol.
"""
