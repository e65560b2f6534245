"""Build the requests to a session's model: the model, the choice and protocol of tools, the hosted tools.

The loop sends these requests, a compaction sends one with a question appended, and
``jumpseat.session.nextRequest`` only returns one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import anyio
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject, TextBlock, UserMessage
from jumpseat.agent.clock import utc_now
from jumpseat.agent.conversation.prompt import system_prompt, to_transform, wrap_prompt_in_thread
from jumpseat.agent.conversation.result_size import fit_results
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import (
    Completed,
    ContextEditing,
    HostedTool,
    ModelInfo,
    ModelRequest,
    SubAgentRef,
    ToolChoice,
    ToolSpec,
    provider_request,
)
from jumpseat.agent.model_calls.structured import format_for_call, with_response_format
from jumpseat.agent.session.history import TOOLS_INFO
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ClientCallError, InvalidRequestError, JumpseatError
from jumpseat_protocol import events
from jumpseat_protocol.events import SessionInfo, SessionWarning
from jumpseat_protocol.sessions import SpecificToolChoice, ToolChoiceConfig

log = logging.getLogger(__name__)


def with_tool_protocol(resolved: ResolvedModel) -> ResolvedModel:
    """Wrap a model that does not take tools natively, so that it calls them as XML."""
    if not uses_xml(resolved.info):
        return resolved
    # Imported late: most models do not need it.
    from jumpseat.agent.model_calls.xml_tools.model import XmlToolModel

    return replace(resolved, model=XmlToolModel(resolved.model))


def uses_xml(info: ModelInfo) -> bool:
    """Return whether a model calls tools as XML in its text."""
    return info.tool_protocol == "xml" or (info.tool_protocol is None and info.tools is False)


def with_written_calls(resolved: ResolvedModel) -> ResolvedModel:
    """Wrap a model so that the calls that it writes as text become calls."""
    # Imported late: a server may never call a model.
    from jumpseat.agent.model_calls.written_answers import WrittenCallsModel

    return replace(resolved, model=WrittenCallsModel(resolved.model, anywhere=uses_xml(resolved.info)))


def without_native_tools(resolved: ResolvedModel) -> ResolvedModel | None:
    """Return the model with XML tools, after its provider rejected native ones; ``None`` if that cannot help."""
    if resolved.info.tool_protocol is not None or resolved.info.tools is False:
        return None
    return replace(resolved, info=replace(resolved.info, tools=False))


ALIASES: Final[Mapping[str, str]] = {
    "search": "web_search",
    "google_search": "web_search",
    "google_search_web": "web_search",
    "web_fetch": "url_context",
    "fetch_webpage": "url_context",
    "code_exec": "code_execution",
    "code_interpreter": "code_execution",
    "file_edit": "text_editor",
}

RUN_BY_OURS: Final[Mapping[str, tuple[str, ...]]] = {"bash": ("bash",), "text_editor": ("view", "create", "edit")}
"""Tools whose calls are run by our own tools, with their permissions, if all of these are offered."""

REPLACES: Final[Mapping[str, str]] = {"web_search": "web_search", "url_context": "web_fetch"}
"""Hosted tools, each with the tool of ours that it replaces."""


def hosted_for_call(
    session: Session, prompt: Prompt, resolved: ResolvedModel, tools: list[ToolSpec]
) -> list[HostedTool]:
    """Return the requested hosted tools that the model supports; ``tools`` are our own tools on offer."""
    requested = _requested_tools(session, prompt)
    if not requested:
        return []
    can = resolved.model.capabilities(resolved.wire_name).hosted_tools
    ours = {tool.name for tool in tools} - session.clients.tools().keys()
    return [
        HostedTool(name, options)
        for name, options in requested.items()
        if name in can and ours.issuperset(RUN_BY_OURS.get(name, ()))
    ]


def without_replaced(session: Session, tools: list[ToolSpec], hosted: list[HostedTool]) -> list[ToolSpec]:
    """Remove our own tools that hosted ones replace, since some providers reject two tools with one name."""
    replaced = {REPLACES[tool.name] for tool in hosted if tool.name in REPLACES} - session.clients.tools().keys()
    return [tool for tool in tools if tool.name not in replaced] if replaced else tools


SMALL_WINDOW: Final = 8192
"""The largest prompt of a model that gets fewer tools, in tokens: the default ones would take a third of it."""


def has_small_window(resolved: ResolvedModel) -> bool:
    """Return whether the window of a model is known to be small."""
    known = resolved.known
    limit = known.context_window or known.max_prompt_tokens
    return limit is not None and limit <= SMALL_WINDOW


def tell_of_small_window(session: Session, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Tell the user once that a model gets fewer tools because of its window; for sub-agents, it is the same."""
    if session.identity is not None or session.history.told_of_tools or not request.tools:
        return
    if has_small_window(resolved) and session.tools.shortens():
        names = ", ".join(tool.name for tool in request.tools)
        limit = resolved.known.context_window or resolved.known.max_prompt_tokens or 0
        text = (
            f"{resolved.info.id} gets only these tools, because its window is {limit:,} tokens: {names}."
            ' To offer the usual ones, start with --tools default, or set offered = "default" under [tools] in'
            " config.toml."
        )
        session.emit(SessionInfo(info_type=TOOLS_INFO, message=text))


async def warn_of_unknown_tools(session: Session, request: ModelRequest) -> None:
    """Warn the user once of chosen and excluded tools that do not exist."""
    unknown = await session.tools.unknown_names({tool.name for tool in request.tools})
    if session.identity is not None or unknown.keys() <= session.warned.tools:
        return
    session.warned.tools |= unknown.keys()
    told = (
        f"{name!r}" if meant is None else f"{name!r} (did you mean {meant!r}?)" for name, meant in unknown.items()
    )
    text = f"The choice of tools names some that do not exist: {', '.join(told)}."
    session.emit(SessionWarning(warning_type="tools", message=text))


def warn_of_missing(session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Warn the client of requested hosted tools that the model does not support, unless already done.

    A tool that ours replace is not missing: the model is offered our functions instead.
    """
    requested = _requested_tools(session, prompt).keys()
    ours = {tool.name for tool in request.tools}
    replaced = {name for name, functions in RUN_BY_OURS.items() if ours.issuperset(functions)}
    missing = sorted(requested - {tool.name for tool in request.hosted_tools} - replaced)
    if missing and missing != session.warned.hosted_tools:
        text = f"{resolved.info.id} does not support these hosted tools: {', '.join(missing)}."
        session.emit(SessionWarning(warning_type="hosted_tool", message=text))
    session.warned.hosted_tools = missing


def warn_of_written_calls(
    session: Session, resolved: ResolvedModel, request: ModelRequest, completed: Completed
) -> None:
    """Warn the user once if a model has written a call as text, which its server should have turned into one."""
    if session.warned.written_calls or not request.tools or uses_xml(resolved.info):
        return
    message, parser = completed.message, completed.written_for
    if parser is None and message.tool_uses():
        return
    from jumpseat.agent.model_calls.written_answers import describe_written_calls

    if (warning := describe_written_calls(resolved.info.id, parser, message, request.tools)) is not None:
        session.warned.written_calls = True
        session.emit(SessionWarning(warning_type="tool_protocol", message=warning))


def _requested_tools(session: Session, prompt: Prompt) -> dict[str, JsonObject]:
    """Return the options of each requested hosted tool, by our name for it."""
    requested = session.settings.options.hosted_tools if prompt.hosted_tools is None else prompt.hosted_tools
    named: list[tuple[str, JsonObject]] = [
        (tool, {}) if isinstance(tool, str) else (tool.name, tool.options()) for tool in requested
    ]
    return {ALIASES.get(name, name): options for name, options in named}


def check_choice(config: ToolChoiceConfig | None, find_names: Callable[[], Collection[str]]) -> None:
    """Validate a tool choice against the names of the available tools, which are only asked for if it names one.

    Raises:
        InvalidRequestError: the choice names a tool that is not among the names.
    """
    if isinstance(config, SpecificToolChoice) and config.tool_name not in (names := find_names()):
        there = f"expected one of {', '.join(sorted(names))}" if names else "the session has no tools"
        raise InvalidRequestError(f"toolChoice names the unknown tool {config.tool_name!r}, {there}")


def choice_for_call(settings: SessionSettings, prompt: Prompt, names: Collection[str]) -> ToolChoice | None:
    """Return the choice for the next model call of ``prompt``; ``names`` are the tools on offer.

    Raises:
        InvalidRequestError: the choice names a tool that is no longer offered.
    """
    config = prompt.tool_choice or settings.options.tool_choice
    if config is None:
        return None
    if prompt.called and config.mode in ("required", "specific"):
        return None if config.parallel is None else ToolChoice(parallel=config.parallel)
    check_choice(config, lambda: names)
    name = config.tool_name if isinstance(config, SpecificToolChoice) else None
    return ToolChoice(config.mode, name, config.parallel)


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
    project = await session.describe_project() if config.mode != "replace" else ""
    transformed: dict[str, str] = {}
    wanted = to_transform(config, cwd, instructions, tools, folders, omitted, project)
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
    return system_prompt(config, cwd, instructions, transformed, tools, folders, agent_prompt, omitted, project)


async def find_model(session: Session) -> ResolvedModel:
    """Resolve the model to call: the custom agent's if it has one that is available, else the session's.

    Raises:
        JumpseatError: the session's model cannot be resolved, or that of an agent that requires it.
    """
    settings, models, ask = session.settings, session.services.models, session.clients.ask_token
    wanted, agent = settings.for_model(), settings.custom_agent
    if wanted.options.model != settings.options.model:
        try:
            return _with_profile(session, wanted, await models.resolve(wanted, ask_token=ask))
        except JumpseatError as error:
            if agent is not None and agent.model_policy == "required":
                raise
            name = settings.options.agent
            text = f"The model {wanted.options.model!r} of the agent {name!r} is not available: {error}"
        if text != session.warned.agent_model:
            session.emit(events.SessionWarning(warning_type="custom_agent", message=text))
        session.warned.agent_model = text
    return _with_profile(session, wanted, await models.resolve(settings, ask_token=ask))


def _with_profile(session: Session, settings: SessionSettings, resolved: ResolvedModel) -> ResolvedModel:
    """Let the session know the profile of the model that these settings mean."""
    # Imported with the first session that calls a model.
    from jumpseat.agent.profiles import profile_of

    profile, chosen = profile_of(resolved.wire_name, resolved.info.id), resolved.info.edit_tools
    session.note_profile(settings.options.model, replace(profile, edit_tools=chosen or profile.edit_tools))
    return resolved


def build_request(session: Session, prompt: Prompt, system: str, resolved: ResolvedModel) -> ModelRequest:
    """Build the next request of a run from the conversation, the tools on offer and the settings."""
    settings = session.settings
    tools = session.tools.specs(_forced_tool(session, prompt), small=has_small_window(resolved))
    if not session.profile().free_form:
        tools = [replace(tool, grammar=None) if tool.grammar is not None else tool for tool in tools]
    hosted = hosted_for_call(session, prompt, resolved, tools)
    tools = without_replaced(session, tools, hosted)
    return ModelRequest(
        model=resolved.wire_name,
        system=system,
        messages=fit_results(session.conversation.messages(), resolved.known.prompt_limit),
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
        unasked=session.identity is not None or prompt.notification is not None or not prompt.billable,
        context_editing=_context_editing(session, resolved, tools),
        written=session.written,
    )


def _context_editing(session: Session, resolved: ResolvedModel, tools: Sequence[ToolSpec]) -> ContextEditing | None:
    edits = resolved.model.capabilities(resolved.wire_name).edits_context
    if edits is None or resolved.info.context_editing is False or not session.compaction_policy.enabled:
        return None
    # Imported late: off by default.
    from jumpseat.agent.model_calls.context_editing import editing_for

    return editing_for(edits, resolved, tools)


def _forced_tool(session: Session, prompt: Prompt) -> str | None:
    choice = prompt.tool_choice or session.settings.options.tool_choice
    return choice.tool_name if isinstance(choice, SpecificToolChoice) else None
