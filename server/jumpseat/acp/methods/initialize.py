"""``initialize``: which version is spoken, and what either side can do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import InitializeParams
from jumpseat.agent.settings import SessionSettings
from jumpseat.store.options import StoredOptions
from jumpseat_protocol.sessions import SessionCreateParams, SessionOptions
from jumpseat_protocol.version import __version__

VERSION: Final = 1
"""The one version there is; a client that speaks another is answered with this one and decides."""

AUTH_METHOD: Final = {
    "id": "configured",
    "name": "Keys from the environment or the configuration",
    "description": (
        "No login: the server uses OPENAI_API_KEY, ANTHROPIC_API_KEY, COPILOT_PROVIDER_BASE_URL and the like,"
        " or its config.toml"
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


async def _warm(door: AcpContext) -> None:
    """Have ready what the first session is checked and kept with, while the editor reads the answer."""
    SessionCreateParams.model_rebuild()
    SessionOptions.model_rebuild()
    StoredOptions.model_rebuild()
    door.ctx.models.check(SessionSettings(cwd=Path.cwd()))


def initialize(door: AcpContext, params: InitializeParams) -> dict[str, Any]:
    """Answered at once: nothing is loaded or asked for it."""
    door.connection.tasks.start_soon(_warm, door)
    door.capabilities = params.client_capabilities
    if params.client_info is not None and params.client_info.name:
        named = f"{params.client_info.name}/{params.client_info.version or '0'}"
        # It goes into a line of HTTP.
        door.client_name = "".join(one for one in named if one.isascii() and one.isprintable())[:100]
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": CAPABILITIES,
        "agentInfo": {"name": "jumpseat", "title": "Jumpseat", "version": __version__},
        "authMethods": [AUTH_METHOD],
    }
