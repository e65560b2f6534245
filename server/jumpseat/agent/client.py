"""A client as a session sees it: someone to deliver events to, and to ask what it declared it can answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.editor import EditorFiles, EditorTerminals
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, Event
from jumpseat_protocol.sessions import ClientCommand, ClientTool


class Client(Protocol):
    """One connection.

    Delivery never blocks and never fails; a client that is gone simply gets nothing. The questions raise
    :class:`~jumpseat.errors.ClientCallError` where the client fails, is gone, or answers what it should not.
    """

    def deliver(self, session_id: str, event: Event) -> None:
        """Send one event. Events arrive in the order of the calls."""
        ...

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent."""
        ...

    async def invoke_hook(self, session_id: str, hook_type: str, hook_input: JsonObject) -> JsonObject | None:
        """Let a hook speak; ``None`` where it has nothing to say."""
        ...

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        """Put a question to the person behind the client."""
        ...

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        """Put a plan to the person behind the client."""
        ...

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        """Ask the person whether to go on with the model that the provider chooses."""
        ...

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        """Let the client rewrite sections of the system message."""
        ...

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        """Ask for the bearer token of a provider."""
        ...

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        """Ask for the GitHub token of a session, by the registration that the client gave for it."""
        ...

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        """Have the client make a model request."""
        ...

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        """Send a piece of that request's body, or take the request back."""
        ...


@dataclass(slots=True)
class Attachment:
    """What one client brought to one session."""

    client: Client
    handles_permissions: bool = False
    handles_elicitation: bool = False
    handles_user_input: bool = False
    handles_plans: bool = False
    handles_auto_mode_switch: bool = False
    has_hooks: bool = False
    has_transforms: bool = False
    has_tokens: bool = False
    protocol: int = 3
    tools: dict[str, ClientTool] = field(default_factory=dict[str, ClientTool])
    commands: dict[str, ClientCommand] = field(default_factory=dict[str, ClientCommand])
    files: EditorFiles | None = None
    terminals: EditorTerminals | None = None
    leaving: bool = False
    """It is on its way out: its hook has been told."""
