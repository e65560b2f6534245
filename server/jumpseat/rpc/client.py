"""The client at the other end of a connection: the state, and the questions to it, that both protocols share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.errors import ClientCallError
from jumpseat.rpc.json_rpc_peer import JsonRpcPeer
from jumpseat.rpc.transport import Wire
from jumpseat.sessions.access import Access
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    AutoModeSwitchResponse,
    CancelClientTaskParams,
    CancelClientTaskResult,
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasOpenResult,
    EmptyAnswer,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HooksInvokeParams,
    HooksInvokeResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    ProviderTokenParams,
    ProviderTokenResult,
    SectionContent,
    SystemMessageTransformParams,
    SystemMessageTransformResult,
    UserInputRequestParams,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer
from jumpseat_protocol.wire import WireModel

log = logging.getLogger(__name__)

# Joined for a client that has stopped reading.
DELTAS: Final = frozenset(
    {
        "assistant.message_delta",
        "assistant.reasoning_delta",
        "assistant.tool_call_delta",
        "tool.execution_partial_result",
        "tool.execution_progress",
    }
)
# A turn waits once this long for a client that does not read; later turns do not wait.
DRAIN_TIMEOUT_S: Final = 10.0

PROMPT_S: Final = 0.2
"""Time for the requests of a client that sends nothing more, until its prompts are cancelled."""
ANSWER_S: Final = 2.0
"""Time for the responses to the other requests, and time for the client to read them all."""

if TYPE_CHECKING:
    from jumpseat_protocol.session_fs import SetFsProviderParams

R = TypeVar("R", bound=WireModel)


class ConnectedClient:
    """The part of :class:`jumpseat.agent.client.Client` and :class:`jumpseat.sessions.context.Caller` in common.

    ``noun`` is the client's name in messages, ``when_slow`` says what becomes of deltas that it does not read.
    """

    noun: ClassVar[str] = "client"
    when_slow: ClassVar[str] = "its deltas are joined"
    wire: Wire
    peer: JsonRpcPeer

    def __init__(self, access: Access | None, protocol: int | None, tasks: TaskGroup) -> None:
        self.access = access
        self.handshake_done = False
        self.protocol = protocol
        self.wants_telemetry = False
        self.streams: set[str] = set()
        self.session_fs: SetFsProviderParams | None = None
        self.tasks = tasks
        self._slow = False

    @property
    def connected(self) -> bool:
        """Return whether the client has not hung up."""
        return self.wire.open

    @property
    def behind(self) -> bool:
        return self.wire.busy

    async def wait_until_read(self) -> None:
        await self.wire.drain()

    async def drain(self) -> None:
        """Wait until the client has read all messages; for a client that has stopped reading, only once."""
        if self._slow and self.wire.busy:
            return
        with anyio.move_on_after(DRAIN_TIMEOUT_S) as scope:
            await self.wire.drain()
        if scope.cancelled_caught and not self._slow:
            log.warning("the %s has stopped reading; %s", self.noun, self.when_slow)
        self._slow = scope.cancelled_caught

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        self.peer.notify(method, params)

    def close(self) -> None:
        """Send the queued messages and end the connection."""
        self.wire.close()

    def abort(self) -> None:
        """End the connection at once, also if it has no transport yet."""
        self.wire.abort()

    # --- the end ------------------------------------------------------------------------------------------------

    def handle_end(self) -> None:
        """Answer the requests that were read, and end the connection: the client sends nothing more."""
        self.peer.fail_own()
        if self.peer.has_requests or self.wire.unsent:
            self.tasks.start_soon(self._finish)
        else:
            # At once, so that another client can take its place.
            self.wire.close()

    async def _finish(self) -> None:
        try:
            with anyio.move_on_after(PROMPT_S):
                await self.peer.wait_until_answered()
            self.stop_prompts()
            with anyio.move_on_after(ANSWER_S):
                await self.peer.wait_until_answered()
            self.peer.cancel_all()
            with anyio.move_on_after(ANSWER_S):
                await self.peer.wait_until_answered()
                await self.wire.wait_until_sent()
        finally:
            self.wire.close()

    def stop_prompts(self) -> None:
        """Stop the prompts whose requests are open: no client would see much of a run."""

    # --- questions ----------------------------------------------------------------------------------------------

    async def invoke_hook(
        self, session_id: str, hook_type: str, hook_input: dict[str, Any]
    ) -> dict[str, Any] | None:
        params = HooksInvokeParams(session_id=session_id, hook_type=hook_type, input=hook_input)
        return (await self._ask("hooks.invoke", params, HooksInvokeResult)).output

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        params = UserInputRequestParams(
            session_id=session_id, question=question, choices=choices, allow_freeform=allow_freeform
        )
        return await self._ask("userInput.request", params, UserInputResponse)

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        return await self._ask("exitPlanMode.request", params, ExitPlanModeResponse)

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        return (await self._ask("autoModeSwitch.request", params, AutoModeSwitchResponse)).response

    @property
    def mcp_servers(self) -> Collection[str]:
        """The ids of the MCP servers that the client serves over this connection. Only editors serve any."""
        return ()

    async def ask_mcp(
        self, server_id: str, message: dict[str, Any], notified: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        raise ClientCallError(f"the {self.noun} serves no MCP server {server_id[:100]!r}")

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        params = SystemMessageTransformParams(
            session_id=session_id,
            sections={name: SectionContent(content=content) for name, content in sections.items()},
        )
        result = await self._ask("systemMessage.transform", params, SystemMessageTransformResult)
        return {name: section.content for name, section in result.sections.items()}

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        params = ProviderTokenParams(session_id=session_id, provider_name=provider_name)
        return (await self._ask("providerToken.getToken", params, ProviderTokenResult)).token

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        return await self._ask("gitHubToken.getToken", params, GitHubTokenResult)

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        await self._ask("llmInference.httpRequestStart", params, EmptyAnswer)

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        await self._ask("llmInference.httpRequestChunk", params, EmptyAnswer)

    async def open_canvas(self, params: CanvasOpenParams) -> CanvasOpenResult:
        return await self._ask("canvas.open", params, CanvasOpenResult)

    async def invoke_canvas_action(self, params: CanvasActionParams) -> Any:
        return await self._ask_json("canvas.action.invoke", params)

    async def close_canvas(self, params: CanvasCloseParams) -> None:
        await self._ask("canvas.close", params, EmptyAnswer)

    async def cancel_task(self, params: CancelClientTaskParams) -> CancelClientTaskResult:
        return await self._ask("tasks.cancel", params, CancelClientTaskResult)

    async def ask_session_fs(self, method: str, params: WireModel, result: type[R]) -> R:
        return await self._ask(method, params, result)

    async def _ask(self, method: str, params: WireModel, result: type[R]) -> R:
        return self._read(method, await self._ask_json(method, params), result)

    async def _ask_json(self, method: str, params: WireModel) -> Any:
        return await self.peer.ask(method, params.wire())

    def _read(self, method: str, answer: Any, result: type[R]) -> R:
        """Return the answer to a request as an object.

        Raises:
            ClientCallError: the answer has another form.
        """
        try:
            return result.model_validate({} if answer is None else answer)
        except ValidationError:
            raise ClientCallError(f"the {self.noun}'s response to {method!r} could not be read") from None
