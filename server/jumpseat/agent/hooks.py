"""Hooks: what a client may say at fixed points of a session.

A hook that fails, takes too long or answers nonsense has no opinion: it never stops a session, and never lets
anything through that would not have run without it. Where no attached client has hooks, nothing is asked and
nothing is published.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from pydantic import ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ClientCallError
from jumpseat_protocol import callbacks, events
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat.agent.client import Client
    from jumpseat.agent.settings import SessionSettings

log = logging.getLogger(__name__)

PATIENCE_S: Final = 60.0
"""How long one hook may take."""

O = TypeVar("O", bound=WireModel)  # noqa: E741 - the usual letter for an output


class Hooks:
    """The hooks of one session. ``find_client`` gives the client that has them, if there is one."""

    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        emit: Callable[[events.EventPayload], object],
        find_client: Callable[[], Client | None],
    ) -> None:
        self._session_id = session_id
        self._settings = settings
        self._emit = emit
        self._find_client = find_client
        self.patience_s = PATIENCE_S

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

    async def session_end(self, reason: str) -> callbacks.SessionEndOutput:
        return await self._ask(callbacks.SessionEndOutput, "sessionEnd", reason=reason)

    async def _ask(self, output: type[O], hook_type: str, **fields: Any) -> O:
        client = self._find_client()
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
        said = output()
        try:
            with anyio.move_on_after(self.patience_s):
                said = output.model_validate(await client.invoke_hook(self._session_id, hook_type, asked) or {})
                problem = None
        except ClientCallError:
            problem = "the hook failed"
        except ValidationError:
            problem = "the hook answered in a form that could not be read"
        error = events.HookError(message=problem) if problem is not None else None
        if problem is not None:
            log.warning("session %s: %s hook: %s", self._session_id, hook_type, problem)
        self._emit(
            events.HookEnd(hook_invocation_id=invocation, hook_type=hook_type, success=problem is None, error=error)
        )
        return said
