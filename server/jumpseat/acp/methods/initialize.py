"""``initialize``: the version of the protocol, and the capabilities of both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import InitializeParams
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.version import __version__

VERSION: Final = 1
"""The only version of ACP. A client of another version gets this one in the response, and decides."""

AUTH_METHOD: Final = {
    "id": "configured",
    "name": "Keys from the environment or the configuration",
    "description": (
        "No login: the server uses OPENAI_API_KEY, ANTHROPIC_API_KEY, COPILOT_PROVIDER_BASE_URL and the like,"
        " or what 'jumpseat setup' has stored"
    ),
}

CAPABILITIES: Final[dict[str, Any]] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "resume": {},
        "close": {},
        "additionalDirectories": {},
        "fork": {},
        "title": {},
        "systemPrompt": {"mode": {"override": {}}},
    },
    "auth": {"logout": {}},
    "providers": {},
}


async def _warm(ctx: AcpContext) -> None:
    """Load what the first session needs, while the editor reads the response."""
    ctx.server.models.check(SessionSettings(cwd=Path.cwd()))


def initialize(ctx: AcpContext, params: InitializeParams) -> dict[str, Any]:
    """Store the editor's capabilities and return the server's. Returns at once, before anything is loaded."""
    ctx.editor.connection.tasks.start_soon(_warm, ctx)
    ctx.editor.capabilities = params.client_capabilities
    if params.client_info is not None and params.client_info.name:
        named = f"{params.client_info.name}/{params.client_info.version or '0'}"
        # The name becomes part of an HTTP header.
        ctx.editor.client_name = "".join(
            character for character in named if character.isascii() and character.isprintable()
        )[:100]
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": CAPABILITIES,
        "agentInfo": {"name": "jumpseat", "title": "Jumpseat", "version": __version__},
        "authMethods": [AUTH_METHOD],
    }
