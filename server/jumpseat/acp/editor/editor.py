"""The editor at the other end of a connection: its capabilities, and how it is reached."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from anyio.abc import TaskGroup
from msgspec import Struct, field

from jumpseat.acp.editor.mcp_servers import EditorMcp
from jumpseat.acp.translation.params import ClientCapabilities
from jumpseat.acp.translation.versions import V1, Version
from jumpseat_protocol.wire import WireModel

R = TypeVar("R", bound=WireModel)


class EditorConnection(Protocol):
    """JSON-RPC to the editor, and the task group for work on its behalf."""

    @property
    def tasks(self) -> TaskGroup: ...

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        ...

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        """Send a request and return its result.

        Raises:
            ClientCallError: the editor failed, is gone, or sent a result that ``result`` does not accept.
        """
        ...


class Editor(Struct):
    """The peer of a connection.

    ``initialize`` sets ``capabilities``, ``client_name`` (``name/version``) and the ``version`` of the protocol.
    ``mcp`` are the MCP servers that it serves.
    """

    connection: EditorConnection
    mcp: EditorMcp
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    client_name: str | None = None
    version: Version = V1
