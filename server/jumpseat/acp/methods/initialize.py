"""``initialize``: the version of the protocol, and the capabilities of both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import Implementation, InitializeParams
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.version import __version__

AUTH_METHOD: Final = {
    "id": "configured",
    "name": "Keys from the environment or the configuration",
    "description": (
        "No login: the server uses OPENAI_API_KEY, ANTHROPIC_API_KEY, COPILOT_PROVIDER_BASE_URL and the like,"
        " or what 'jumpseat setup' has stored"
    ),
}

TERMINAL_METHOD: Final[dict[str, Any]] = {
    "type": "terminal",
    "id": "setup",
    "name": "Set up a provider of models",
    "description": "Questions in a terminal: enter a key, try it, choose a model",
    "args": ["--setup"],
}
"""For editors that can run the agent in a terminal. ``--setup`` turns ``jumpseat acp`` into ``jumpseat setup``."""

AGENT: Final = {"name": "jumpseat", "title": "Jumpseat", "version": __version__}

CAPABILITIES: Final[dict[str, Any]] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True, "acp": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "resume": {},
        "close": {},
        "additionalDirectories": {},
        "fork": {},
        "status": {},
        "title": {},
        "systemPrompt": {"mode": {"override": {}}},
    },
    "auth": {"logout": {}, "status": {}},
    "providers": {},
}


async def _warm(ctx: AcpContext) -> None:
    """Load what the first session needs, while the editor reads the response."""
    ctx.server.models.check(SessionSettings(cwd=Path.cwd()))


def initialize(ctx: AcpContext, params: InitializeParams) -> dict[str, Any]:
    """Store the editor's capabilities and return the server's. Returns at once, before anything is loaded.

    An editor that can speak version 2 or a later one gets version 2, all others version 1.

    Raises:
        InvalidRequestError: an editor of version 2 has no ``info``, or wants another version than before.
    """
    ctx.editor.connection.tasks.start_soon(_warm, ctx)
    if params.protocol_version > 1:
        return _initialize_draft(ctx, params)
    if ctx.editor.version.number != 1:
        raise InvalidRequestError(f"the connection speaks version {ctx.editor.version.number} already")
    ctx.editor.capabilities = params.client_capabilities
    note_client(ctx, params.client_info)
    return {
        "protocolVersion": 1,
        "agentCapabilities": CAPABILITIES,
        "agentInfo": AGENT,
        "authMethods": auth_methods(ctx),
    }


def note_client(ctx: AcpContext, info: Implementation | None) -> None:
    """Note the name and the version of the editor."""
    if info is not None and info.name:
        named = f"{info.name[:100]}/{(info.version or '0')[:100]}"
        # The name becomes part of an HTTP header.
        ctx.editor.client_name = "".join(
            character for character in named if character.isascii() and character.isprintable()
        )[:100]


def auth_methods(ctx: AcpContext) -> list[dict[str, Any]]:
    """Return the authentication methods that the editor can offer."""
    has_terminal = ctx.editor.capabilities.auth.terminal not in (None, False)
    return [AUTH_METHOD, TERMINAL_METHOD] if has_terminal else [AUTH_METHOD]


def _initialize_draft(ctx: AcpContext, params: InitializeParams) -> dict[str, Any]:
    # Imported for editors of version 2 only.
    from jumpseat.acp.draft import shapes
    from jumpseat.acp.draft.version import CAPABILITIES as DRAFT_CAPABILITIES
    from jumpseat.acp.draft.version import Draft

    if params.protocol_version == Draft.number and params.info is None:
        raise InvalidRequestError("info is required")
    if (ctx.views or ctx.elsewhere) and ctx.editor.version.number == 1:
        raise InvalidRequestError("the connection speaks version 1 already")
    ctx.editor.version = Draft()
    ctx.editor.capabilities = shapes.abilities_of(params.capabilities)
    note_client(ctx, params.info)
    return {
        "protocolVersion": Draft.number,
        "capabilities": DRAFT_CAPABILITIES,
        "info": AGENT,
        "authMethods": shapes.auth_methods_of(auth_methods(ctx)),
    }
