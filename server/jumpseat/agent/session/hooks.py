"""Hooks: what a client may say at fixed points of a session.

A hook that fails, takes too long or answers nonsense has no opinion: it never stops a session, and never lets
anything through that would not have run without it. Nonsense in one field takes nothing from the others: a denial
whose reason cannot be read is a denial. Where no attached client has hooks, nothing is asked and nothing is
published.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import anyio
from pydantic import ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ClientCallError, StoreError
from jumpseat_protocol import callbacks, events
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat.agent.client import Client
    from jumpseat.agent.settings import SessionSettings

log = logging.getLogger(__name__)

HOOK_TIMEOUT_S: Final = 60.0
"""How long one hook may take, where the configuration says nothing else."""

EndReason: TypeAlias = Literal["complete", "error", "abort", "timeout", "user_exit"]

O = TypeVar("O", bound=WireModel)  # noqa: E741 - the usual letter for an output


class Hooks:
    """The hooks of one session. ``find_client`` gives the client that has them, if there is one."""

    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        emit: Callable[[events.EventPayload], object],
        find_client: Callable[[], Client | None],
        timeout_s: float = HOOK_TIMEOUT_S,
    ) -> None:
        self._session_id = session_id
        self._settings = settings
        self._emit = emit
        self._find_client = find_client
        self.timeout_s = timeout_s

    @property
    def present(self) -> bool:
        """Whether anybody would be asked."""
        return self._find_client() is not None

    async def session_start(self, source: str, initial_prompt: str) -> callbacks.SessionStartOutput:
        return await self._ask(
            callbacks.SessionStartOutput, "sessionStart", source=source, initialPrompt=initial_prompt
        )

    async def user_prompt_submitted(self, prompt: str) -> callbacks.UserPromptSubmittedOutput:
        return await self._ask(callbacks.UserPromptSubmittedOutput, "userPromptSubmitted", prompt=prompt)

    async def user_prompt_transformed(self, prompt: str, transformed: str) -> callbacks.UserPromptTransformedOutput:
        return await self._ask(
            callbacks.UserPromptTransformedOutput,
            "userPromptTransformed",
            prompt=prompt,
            transformedPrompt=transformed,
        )

    async def pre_tool_use(self, tool_name: str, args: JsonObject) -> callbacks.PreToolUseOutput:
        return await self._ask(callbacks.PreToolUseOutput, "preToolUse", toolName=tool_name, toolArgs=args)

    async def post_tool_use(
        self, tool_name: str, args: JsonObject, result: JsonObject
    ) -> callbacks.PostToolUseOutput:
        """``result`` is in the form of ``ToolResultObject``."""
        return await self._ask(
            callbacks.PostToolUseOutput, "postToolUse", toolName=tool_name, toolArgs=args, toolResult=result
        )

    async def post_tool_use_failure(
        self, tool_name: str, args: JsonObject, error: str
    ) -> callbacks.PostToolUseFailureOutput:
        return await self._ask(
            callbacks.PostToolUseFailureOutput, "postToolUseFailure", toolName=tool_name, toolArgs=args, error=error
        )

    async def pre_mcp_tool_call(
        self, server_name: str, tool_name: str, args: JsonObject, call_id: str
    ) -> callbacks.PreMcpToolCallOutput:
        return await self._ask(
            callbacks.PreMcpToolCallOutput,
            "preMcpToolCall",
            serverName=server_name,
            toolName=tool_name,
            arguments=args,
            toolCallId=call_id,
        )

    async def agent_stop(self, transcript_path: str, *, again: bool) -> callbacks.AgentStopOutput:
        """``again``: a hook has kept this run going before."""
        return await self._ask(
            callbacks.AgentStopOutput,
            "agentStop",
            stopReason="end_turn",
            transcriptPath=transcript_path,
            stop_hook_active=again,
        )

    async def error_occurred(self, error: str, *, recoverable: bool) -> callbacks.ErrorOccurredOutput:
        return await self._ask(
            callbacks.ErrorOccurredOutput,
            "errorOccurred",
            error=error,
            errorContext="model_call",
            recoverable=recoverable,
        )

    async def session_end(self, reason: EndReason, client: Client | None = None) -> None:
        """``client`` is the one that leaves, where not the whole session ends. Never fails: an end is an end."""
        try:
            await self._ask(callbacks.SessionEndOutput, "sessionEnd", client, reason=reason)
        except StoreError as error:
            log.error("session %s: its end cannot be written down: %s", self._session_id, error)

    async def _ask(self, output: type[O], hook_type: str, client: Client | None = None, **fields: Any) -> O:
        client = client or self._find_client()
        if client is None:
            return output()
        invocation = str(uuid.uuid4())
        self._emit(events.HookStart(hook_invocation_id=invocation, hook_type=hook_type))
        asked = {
            "sessionId": self._session_id,
            "timestamp": int(time.time() * 1000),
            "cwd": str(self._settings.cwd),
            **fields,
        }
        problem: str | None = "the hook took too long"
        answer: JsonObject = {}
        try:
            with anyio.move_on_after(self.timeout_s):
                answer = await client.invoke_hook(self._session_id, hook_type, asked) or {}
                problem = None
        except ClientCallError:
            problem = "the hook failed"
        except anyio.get_cancelled_exc_class():
            with contextlib.suppress(StoreError):
                self._end(invocation, hook_type, "the hook was not waited for")
            raise
        said, unread = _read(output, answer)
        if unread:
            problem = f"the hook answered in a form that could not be read: {', '.join(unread)}"
        if problem is not None:
            log.warning("session %s: %s hook: %s", self._session_id, hook_type, problem)
        self._end(invocation, hook_type, problem)
        return said

    def _end(self, invocation: str, hook_type: str, problem: str | None) -> None:
        error = events.HookError(message=problem) if problem is not None else None
        self._emit(
            events.HookEnd(hook_invocation_id=invocation, hook_type=hook_type, success=problem is None, error=error)
        )


def _read(output: type[O], answer: JsonObject) -> tuple[O, list[str]]:
    """What an answer says, and the names of the fields that could not be read."""
    try:
        return output.model_validate(answer), []
    except ValidationError as error:
        unread = sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]})
    try:
        return output.model_validate({name: value for name, value in answer.items() if name not in unread}), unread
    except ValidationError:
        return output(), unread
