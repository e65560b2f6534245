"""``session/prompt`` and ``session/cancel``. A prompt gets its response when its turn has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.content import prompt_of, text_block
from jumpseat.acp.translation.params import PromptParams, SessionParams
from jumpseat.acp.translation.updates import stop_reason_of
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.commands.results import AgentPrompt, shown_text
from jumpseat.commands.running import invoke
from jumpseat.errors import ProviderAuthError, TurnFailedError
from jumpseat_protocol.events import SessionError


def prompt(ctx: AcpContext, params: PromptParams) -> Awaitable[dict[str, Any]]:
    """Queue a prompt at once, in the order of arrival, and return a response when its run has ended.

    A prompt that begins with the name of a slash command runs that command. Skills are prompts.
    """
    view = ctx.view(params.session_id)
    session = view.session
    text, attachments = prompt_of(params.prompt)
    if (command := command_of(view, text)) is not None:
        return _command(ctx, view, *command)
    sent = Prompt(text, attachments=attachments, agent_mode=session.settings.mode)
    if not session.queue.running:
        view.translator.usage.reset()
    view.translator.own_messages.add(sent.id)
    session.send(sent)
    return _answer(ctx, view, sent)


def cancel(ctx: AcpContext, params: SessionParams) -> None:
    """Abort the turn. The prompt gets its response when the turn has ended. An idle session is left alone."""
    ctx.editor.connection.tasks.start_soon(_settle, ctx.view(params.session_id).cancel())


async def _settle(stopped: Awaitable[None]) -> None:
    await stopped


async def _answer(ctx: AcpContext, view: SessionView, prompt: Prompt) -> dict[str, Any]:
    """Wait for the end of a prompt's run and return the response.

    Raises:
        ProviderAuthError: the provider refused the credentials.
        TurnFailedError: the run ended in another error.
    """
    run = prompt.run
    try:
        await run.done.wait()
    except anyio.get_cancelled_exc_class():
        # The cancelled request takes its own prompt with it. Other prompts continue, and so does that of a client
        # over a network whose connection was cut.
        if ctx.server.connection.connected:
            with anyio.CancelScope(shield=True):
                await view.session.queue.withdraw(prompt)
        raise
    # The response is the last message of the turn.
    await view.send_plan()
    if run.aborted:
        return {"stopReason": "cancelled", "usage": view.translator.usage.wire()}
    if run.error is not None and isinstance(run.error.payload, SessionError):
        failed = run.error.payload
        if failed.error_type == ProviderAuthError.error_type:
            raise ProviderAuthError(failed.reason)
        raise TurnFailedError(failed.reason)
    usage = view.translator.usage
    return {"stopReason": stop_reason_of(usage.finish_reason), "usage": usage.wire()}


def command_of(view: SessionView, text: str) -> tuple[str, str] | None:
    """Return the slash command of a prompt, and its arguments; ``None`` if it has none. Skills are prompts."""
    name, _, args = text.strip().partition(" ")
    if name.startswith("/") and any(
        name[1:] in (command.name, *(command.aliases or ())) and command.kind != "skill"
        for command in view.commands()
    ):
        return name[1:], args.strip()
    return None


async def _command(ctx: AcpContext, view: SessionView, name: str, args: str) -> dict[str, Any]:
    def begin(prompt: Prompt) -> None:
        view.translator.own_messages.add(prompt.id)

    def show(text: str) -> None:
        view.send({"sessionUpdate": "agent_message_chunk", "content": text_block(text)})

    finished = await run_command(ctx, view, (name, args), begin, show)
    return {"stopReason": "end_turn" if finished else "cancelled"}


async def run_command(
    ctx: AcpContext,
    view: SessionView,
    command: tuple[str, str],
    begin: Callable[[Prompt], None],
    show: Callable[[str], None],
) -> bool:
    """Run a slash command, and return whether it finished: it may be cancelled.

    ``begin`` gets the prompt that the command stands for, before that is sent, ``show`` a text of the command.
    """

    async def run() -> None:
        result = await invoke(ctx.server, view.session, *command)
        if isinstance(result, AgentPrompt):
            prompt = result.as_prompt()
            begin(prompt)
            view.session.send(prompt)
            try:
                await prompt.run.done.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await view.session.queue.withdraw(prompt)
        elif shown := shown_text(result):
            show(shown)

    return await view.run_command(run())
