"""The Agent Client Protocol over streamable HTTP: posted messages, and streams of events.

https://agentclientprotocol.com/rfds/streamable-http-websocket-transport (as of 2026-07-02)
"""
