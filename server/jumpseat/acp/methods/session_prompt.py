"""``session/prompt`` and ``session/cancel``: a prompt is answered when its turn has ended."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

import anyio

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.content import prompt_of, text_block
from jumpseat.acp.translation.params import PromptParams, SessionParams
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.turns.commands import invoke
from jumpseat.errors import ProviderAuthError, TurnFailedError
from jumpseat_protocol.events import SessionError

STOP_REASONS: Final = {"max_tokens": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}


def prompt(door: AcpContext, params: PromptParams) -> Awaitable[dict[str, Any]]:
    """Send a prompt at once, in the order of arrival, and answer when its run has ended.

    A text that begins with the name of a slash command is that command; that of a skill is a prompt.
    """
    view = door.view(params.session_id)
    session = view.session
    text, attachments = prompt_of(params.prompt)
    name, _, args = text.strip().partition(" ")
    if name.startswith("/") and any(name[1:] == one.name and one.kind != "skill" for one in view.commands()):
        return _command(view, name[1:], args.strip())
    sent = Prompt(text, attachments=attachments, agent_mode=session.settings.mode)
    if not session.queue.running:
        view.translator.spent.begin()
    session.send(sent)
    return _answer(view, sent)


def cancel(door: AcpContext, params: SessionParams) -> None:
    """Stop what runs; the prompt is answered when all is quiet. Fine when idle."""
    door.connection.tasks.start_soon(_settle, door.view(params.session_id).cancel())


async def _settle(stopped: Awaitable[None]) -> None:
    await stopped


async def _answer(view: SessionView, prompt: Prompt) -> dict[str, Any]:
    """What became of a prompt.

    Raises:
        TurnFailedError: its run ended in an error.
    """
    run = prompt.run
    try:
        await run.done.wait()
    except anyio.get_cancelled_exc_class():
        # The request was taken back, and with it what it has set going; what others have asked for goes on.
        with anyio.CancelScope(shield=True):
            await view.session.queue.withdraw(prompt)
        raise
    # An answer is the last word of its turn.
    await view.tell_plan()
    if run.aborted:
        return {"stopReason": "cancelled", "usage": view.translator.spent.wire()}
    if run.error is not None and isinstance(run.error.payload, SessionError):
        failed = run.error.payload
        if failed.error_type == ProviderAuthError.error_type:
            raise ProviderAuthError(failed.message)
        raise TurnFailedError(failed.message)
    spent = view.translator.spent
    reason = STOP_REASONS.get(spent.finish_reason or "", "end_turn")
    return {"stopReason": reason, "usage": spent.wire()}


async def _command(view: SessionView, name: str, args: str) -> dict[str, Any]:
    async def run() -> None:
        shown = await invoke(view.session, name, args)
        if isinstance(shown, str) and shown:
            view.tell({"sessionUpdate": "agent_message_chunk", "content": text_block(shown)})

    done = await view.run_command(run())
    return {"stopReason": "end_turn" if done else "cancelled"}
