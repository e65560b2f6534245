"""Resolve the model of a session and build the requests to it.

The loop sends these requests, a compaction sends one with a question appended, and
``jumpseat.session.nextRequest`` only returns one.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import anyio

from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.clock import utc_now
from jumpseat.agent.conversation.prompt import wrap_prompt_in_thread
from jumpseat.agent.conversation.system_prompt import system_prompt, to_transform
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest, SubAgentRef
from jumpseat.agent.model_calls.hosted_tools import hosted_for_call, without_replaced
from jumpseat.agent.model_calls.structured import format_for_call, with_response_format
from jumpseat.agent.model_calls.tool_choice import choice_for_call
from jumpseat.agent.model_calls.tool_protocol import with_tool_protocol
from jumpseat.agent.rewriting import provider_request
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, JumpseatError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import SpecificToolChoice

log = logging.getLogger(__name__)


async def next_request(session: Session, text: str | None) -> tuple[ResolvedModel, ModelRequest]:
    """Return the request that the prompt ``text`` would send now, or without a prompt the one that would follow.

    Nothing is sent to the model and the session does not change. Hooks are not called; the client is asked to
    transform sections of the system message.

    Raises:
        JumpseatError: the session's model cannot be resolved.
    """
    resolved = await find_model(session)
    await session.tools.discover(text or "")
    try:
        request = build_request(session, Prompt(text or ""), await system_message(session), resolved)
        if text is not None:
            wrapped = await wrap_prompt_in_thread(
                session.tools.expand_mentions(text),
                [],
                utc_now(),
                session.settings.cwd,
                after_abort=session.conversation.interrupted,
                tools_gone=session.tools_gone(),
            )
            request = replace(request, messages=[*request.messages, UserMessage([TextBlock(wrapped)])])
    finally:
        # Forget the mentions in a prompt that is not sent.
        await session.tools.discover("")
    return resolved, provider_request(with_response_format(with_tool_protocol(resolved), request).model, request)


async def system_message(session: Session) -> str:
    """Return the system message for one prompt. Sections that the client fails to transform stay unchanged."""
    config, cwd = session.settings.options.system_message, session.settings.cwd
    instructions = session.services.read_instructions(session.settings)
    texts = session.tools.in_system_message()
    tools, omitted = texts.instructions, texts.omitted_sections
    folders = session.permissions.path_scope.added_folders
    transformed: dict[str, str] = {}
    wanted = to_transform(config, cwd, instructions, tools, folders, omitted)
    client = session.clients.transform_client()
    if wanted and client is not None:
        try:
            with anyio.fail_after(session.hooks.timeout_s):
                answer = await client.transform_system_message(session.id, wanted)
        except (ClientCallError, TimeoutError) as error:
            log.warning("session %s: the system message was not transformed: %s", session.id, error)
        else:
            transformed = {name: text for name, text in answer.items() if name in wanted}
    agent = session.settings.custom_agent
    agent_prompt = agent.prompt if agent else ""
    return system_prompt(config, cwd, instructions, transformed, tools, folders, agent_prompt, omitted)


async def find_model(session: Session) -> ResolvedModel:
    """Resolve the model to call: the custom agent's if it has one that is available, else the session's.

    Raises:
        JumpseatError: the session's model cannot be resolved.
    """
    settings, models, ask = session.settings, session.services.models, session.clients.ask_token
    wanted, agent = settings.for_model(), settings.options.agent
    if wanted.options.model != settings.options.model:
        try:
            return await models.resolve(wanted, ask_token=ask)
        except JumpseatError as error:
            text = f"The model {wanted.options.model!r} of the agent {agent!r} is not available: {error}"
        if text != session.warned.agent_model:
            session.emit(events.SessionWarning(warning_type="custom_agent", message=text))
        session.warned.agent_model = text
    return await models.resolve(settings, ask_token=ask)


def build_request(session: Session, prompt: Prompt, system: str, resolved: ResolvedModel) -> ModelRequest:
    """Build the next request of a run from the conversation, the tools on offer and the settings."""
    settings = session.settings
    tools = session.tools.specs(_forced_tool(session, prompt))
    hosted = hosted_for_call(session, prompt, resolved, tools)
    tools = without_replaced(session, tools, hosted)
    return ModelRequest(
        model=resolved.wire_name,
        system=system,
        messages=session.conversation.messages(),
        tools=tools,
        tool_choice=choice_for_call(settings, prompt, [tool.name for tool in tools]),
        hosted_tools=hosted,
        stream=settings.options.streaming,
        vision=resolved.info.vision is not False and resolved.model.capabilities(resolved.wire_name).images,
        reasoning_effort=settings.for_model().options.reasoning_effort,
        reasoning_summary=settings.options.reasoning_summary,
        max_output_tokens=resolved.info.max_output_tokens,
        response_format=format_for_call(settings, prompt),
        settings={**settings.options.adapter_settings, **prompt.adapter_settings},
        headers=prompt.headers,
        session_id=session.id,
        interaction_id=prompt.interaction_id,
        agent=None if session.identity is None else SubAgentRef(session.identity.id, session.identity.parent_id),
        unasked=session.identity is not None or prompt.notification is not None,
        written=session.written,
    )


def _forced_tool(session: Session, prompt: Prompt) -> str | None:
    choice = prompt.tool_choice or session.settings.options.tool_choice
    return choice.tool_name if isinstance(choice, SpecificToolChoice) else None
