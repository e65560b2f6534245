"""The session's view of a client: it receives events, answers questions, and lends the buffers of an editor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    CancelClientTaskParams,
    CancelClientTaskResult,
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasOpenResult,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, Event
from jumpseat_protocol.sessions import CanvasDeclaration, ClientCommand, ClientTool

if TYPE_CHECKING:
    from jumpseat.agent.buffer_history import BufferHistory


class EditorFiles(Protocol):
    """Files as the editor shows them, including unsaved changes. ``history`` tells those from outdated buffers."""

    history: BufferHistory

    async def read(self, path: Path) -> str | None:
        """Return the text of a file; ``None`` if the editor does not serve it, so that the file on disk counts."""
        ...

    async def write(self, path: Path, text: str) -> bool:
        """Write a file through the editor; return ``False`` if the editor cannot write files at all.

        Raises:
            ClientCallError: the editor refused or failed to write the file.
        """
        ...


class TerminalText(Struct, frozen=True):
    """The output of a terminal, whether its beginning was dropped, and the exit code of an ended command."""

    text: str
    truncated: bool
    exit_code: int | None = None


class EditorTerminal(Protocol):
    """A command in a terminal of the editor.

    All methods raise :class:`~jumpseat.errors.ClientCallError` if the editor fails or is disconnected.
    """

    async def output(self) -> TerminalText:
        """Return the retained output, and the exit code of a command that has ended."""
        ...

    async def wait(self) -> int:
        """Wait for the command and return its exit code; 128 + N after signal N, as shells report it."""
        ...

    async def kill(self) -> None:
        """Kill the command."""
        ...

    async def release(self) -> None:
        """Release the terminal; its output stays visible in the editor."""
        ...


class EditorTerminals(Protocol):
    """The terminals of the editor."""

    async def run(self, call_id: str, command: Sequence[str], cwd: Path, environ: dict[str, str]) -> EditorTerminal:
        """Run a program with arguments in a terminal shown with the tool call ``call_id``.

        ``environ`` is added to the editor's own environment. A terminal that opens after its caller was cancelled
        is released, which ends the command.

        Raises:
            ClientRefusedError: the editor has opened no terminal.
            ClientCallError: the editor did not answer, so the command may have begun.
        """
        ...


NO_ARGUMENTS: Final = ToolSchema.of({"type": "object", "properties": {}})


class Client(Protocol):
    """The connection to one client.

    Delivery never blocks and never fails; events for a disconnected client are dropped. All questions raise
    :class:`~jumpseat.errors.ClientCallError` if the client fails, is disconnected, or returns an invalid answer.
    """

    def deliver(self, session_id: str, event: Event) -> None:
        """Send one event. Events arrive in the order of these calls."""
        ...

    @property
    def behind(self) -> bool:
        """Return whether much of the data sent to the client is unread."""
        ...

    async def drain(self) -> None:
        """Wait until the client has read most of the data sent to it."""
        ...

    async def invoke_hook(self, session_id: str, hook_type: str, hook_input: JsonObject) -> JsonObject | None:
        """Call a hook of the client and return its output; ``None`` where the hook has no opinion."""
        ...

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        """Ask the user a question."""
        ...

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        """Ask the user to approve a plan."""
        ...

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        """Ask the user whether to continue with a model chosen by the provider."""
        ...

    @property
    def mcp_servers(self) -> Collection[str]:
        """Return the ids of the MCP servers that the client serves over its own connection."""
        ...

    async def ask_mcp(
        self, server_id: str, message: JsonObject, notified: Callable[[JsonObject], None]
    ) -> JsonObject:
        """Send a request to such a server. It has an ``id``, a ``method``, and perhaps ``params``.

        ``notified`` gets the notifications that belong to the request, each with a ``method`` and ``params``.

        Returns:
            An object with the server's ``result``, or its ``error``.
        """
        ...

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        """Let the client rewrite sections of the system message; both mappings are from name to text."""
        ...

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        """Return the client's bearer token for a provider."""
        ...

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        """Return the GitHub token of a session, identified by the token provider that the client registered."""
        ...

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        """Start a model request that the client sends in our place."""
        ...

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        """Send a chunk of such a request's body, or cancel the request."""
        ...

    async def open_canvas(self, params: CanvasOpenParams) -> CanvasOpenResult:
        """Open an instance of one of the client's canvases."""
        ...

    async def invoke_canvas_action(self, params: CanvasActionParams) -> Any:
        """Invoke an action on an open instance; returns any JSON."""
        ...

    async def close_canvas(self, params: CanvasCloseParams) -> None:
        """Close an open instance."""
        ...

    async def cancel_task(self, params: CancelClientTaskParams) -> CancelClientTaskResult:
        """Stop a task that the client has registered."""
        ...


class ProvidedTool(Struct, frozen=True):
    """A tool that runs in a client, as the client has declared it."""

    spec: ToolSpec
    overrides_built_in_tool: bool = False
    skip_permission: bool = False
    is_terminal: bool = False
    defer: Literal["auto", "never"] | None = None
    read_only: bool = False

    @classmethod
    def of(cls, tool: ClientTool) -> ProvidedTool:
        schema = ToolSchema.of(tool.parameters) if tool.parameters else NO_ARGUMENTS
        return cls(
            ToolSpec(tool.name, tool.description, schema),
            tool.overrides_built_in_tool,
            tool.skip_permission,
            tool.is_terminal,
            tool.defer,
            tool.metadata is not None and tool.metadata.get("readOnlyHint") is True,
        )


class Attachment(Struct):
    """The capabilities, tools and commands of one client in one session."""

    client: Client
    name: str | None = None
    handles_permissions: bool = False
    handles_elicitation: bool = False
    handles_user_input: bool = False
    handles_plans: bool = False
    handles_auto_mode_switch: bool = False
    stands_in: bool = False
    """The client is asked only while no other client can be."""
    has_hooks: bool = False
    has_transforms: bool = False
    has_tokens: bool = False
    wants_completions: bool = False
    protocol: int = 3
    tools: dict[str, ProvidedTool] = field(default_factory=dict[str, ProvidedTool])
    commands: dict[str, ClientCommand] = field(default_factory=dict[str, ClientCommand])
    renders_canvases: bool = False
    canvases: dict[str, CanvasDeclaration] = field(default_factory=dict[str, CanvasDeclaration])
    canvas_provider: str = ""
    """The id of the provider of the canvases, by default the number of the connection among the clients."""
    canvas_provider_name: str | None = None
    files: EditorFiles | None = None
    terminals: EditorTerminals | None = None
    leaving: bool = False
    """The client is being detached: its hook for the end of the session has been called."""
