"""The methods of version 2 that differ from those of version 1: ``session/prompt``, ``cancel`` and ``resume``.

A prompt gets its response when it has its place in the conversation; updates tell what becomes of it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, cast

import anyio

from jumpseat.acp.draft.version import Follower
from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.methods.session_open import opened_result, reopen, send_history
from jumpseat.acp.methods.session_prompt import command_of, run_command
from jumpseat.acp.translation.content import prompt_of, text_block
from jumpseat.acp.translation.params import PromptParams, ResumeParams, SessionParams
from jumpseat.agent.clock import new_id
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.errors import JumpseatError, SessionInUseError, SessionNotFoundError, TurnFailedError
from jumpseat.rpc.json_rpc_peer import ResponseError
from jumpseat_protocol.events import SessionError

REQUEST_CANCELLED: Final = -32800


def prompt(ctx: AcpContext, params: PromptParams) -> Awaitable[dict[str, Any]]:
    """Send a prompt at once, in the order of arrival. While another one runs, it steers that one.

    With ``"jumpseat/delivery": "queue"`` in ``_meta``, it waits until that one has ended.
    """
    view = ctx.view(params.session_id)
    text, attachments = prompt_of(params.prompt)
    if (command := command_of(view, text)) is not None:
        return _command(ctx, view, command, params)
    sent = Prompt(text, attachments=attachments, agent_mode=view.session.settings.mode)
    inserted = view.inserted[sent.id] = anyio.Event()
    view.session.send(sent, "enqueue" if params.is_queued else "immediate")
    return _acknowledge(view, sent, inserted)


def cancel(ctx: AcpContext, params: SessionParams) -> None:
    """Cancel the prompt that runs, and those that wait. Work in the background goes on."""
    ctx.view(params.session_id).cancel_foreground()


async def resume(ctx: AcpContext, params: ResumeParams) -> dict[str, Any]:
    """Resume a session, and send its history first if the editor asks for that, then its state."""
    view = await reopen(ctx, params)
    if params.replay_from is not None:
        send_history(ctx, view)
    view.take(view.follower.resumed())
    return await opened_result(ctx, view)


async def _acknowledge(view: SessionView, prompt: Prompt, inserted: anyio.Event) -> dict[str, Any]:
    """Wait until a prompt is part of the conversation.

    Raises:
        ResponseError: the prompt was cancelled before.
        TurnFailedError: the prompt has failed before.
    """

    async def settle() -> None:
        await prompt.run.done.wait()
        tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settle)
            await inserted.wait()
            tasks.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await view.session.queue.withdraw(prompt)
        raise
    finally:
        view.inserted.pop(prompt.id, None)
    if not inserted.is_set():
        failure = prompt.run.error.payload if prompt.run.error is not None else None
        if isinstance(failure, SessionError):
            raise TurnFailedError(failure.reason)
        raise ResponseError("the prompt was cancelled", REQUEST_CANCELLED)
    return {"messageId": prompt.id}


async def _command(
    ctx: AcpContext, view: SessionView, command: tuple[str, str], params: PromptParams
) -> dict[str, Any]:
    """Show a slash command as a message of the user, and run it beside."""
    message_id = new_id()
    content = [block.wire() for block in params.prompt]
    view.send({"sessionUpdate": "user_message", "messageId": message_id, "content": content})
    view.take(_follower(view).begin())
    ctx.editor.connection.tasks.start_soon(_run_command, ctx, view, command)
    return {"messageId": message_id}


async def _run_command(ctx: AcpContext, view: SessionView, command: tuple[str, str]) -> None:
    def show(text: str) -> None:
        view.send({"sessionUpdate": "agent_message", "messageId": new_id(), "content": [text_block(text)]})

    follower = _follower(view)
    reason = "end_turn"
    try:
        if not await run_command(ctx, view, command, lambda _prompt: None, show):
            reason = "cancelled"
    except JumpseatError as error:
        reason = "error"
        show(str(error))
    with suppress(SessionInUseError, SessionNotFoundError):
        if not view.session.queue.running:
            view.take(follower.end(reason))


def _follower(view: SessionView) -> Follower:
    # The views of an editor of version 2 have this one.
    return cast("Follower", view.follower)
