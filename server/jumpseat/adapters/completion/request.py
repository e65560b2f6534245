"""Build the model request of ``jumpseat.complete``, and refuse options that the model cannot honour.

The settings that nearly every provider has, such as the temperature, have one name here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from jumpseat.adapters.completion.conversion import to_conversation
from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.blocks import JsonObject, Message
from jumpseat.agent.encoded_history import WrittenBudget, WrittenMessages
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import HostedTool, ModelRequest, ToolChoice, ToolSchema, ToolSpec
from jumpseat.agent.model_calls.requests import ALIASES
from jumpseat.agent.model_calls.structured import check_format, format_of
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol import blocks as wire
from jumpseat_protocol.complete import CompleteParams, ModelChoice
from jumpseat_protocol.tool_checks import MAX_CLIENT_NAME, name_problem, schema_problem
from jumpseat_protocol.tool_definitions import RUN_BY_CALLER, FunctionDetails, Tool, portable_function

NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "seed": ("seed", "random_seed"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
}
"""Our names, each with the names that providers have for the setting."""


async def resolve_model(models: Models, params: ModelChoice, settings: SessionSettings) -> ResolvedModel:
    """Return the model of a call.

    Raises:
        InvalidRequestError: both an adapter and a provider are given.
        JumpseatError: the model cannot be resolved.
    """
    if params.provider is not None and params.adapter is not None:
        raise InvalidRequestError("expected adapter or provider, not both")
    if params.provider is not None and params.provider.has_bearer_token_provider:
        raise InvalidRequestError(
            "provider.hasBearerTokenProvider: only sessions ask for tokens, expected a current bearerToken"
        )
    if params.adapter is not None:
        return await models.of_adapter(params.adapter, params.model, settings)
    models.check(settings)
    return await models.resolve(settings)


def settings_of(params: ModelChoice) -> SessionSettings:
    """Return the settings of a session that would use the same model.

    Raises:
        InvalidRequestError: the working directory does not exist.
    """
    cwd = existing_folder("cwd", params.cwd) if params.cwd is not None else Path.cwd()
    settings = SessionSettings.of(cwd, model=params.model, provider=params.provider)
    if isinstance(params, CompleteParams):
        settings.set_options(adapter_settings=params.settings)
    return settings


async def build_request(models: Models, params: CompleteParams) -> tuple[ResolvedModel, ModelRequest]:
    """Return the model and its request.

    Raises:
        InvalidRequestError: the conversation, a tool or a setting is invalid, or the model has no such hosted tool.
        JumpseatError: the model cannot be resolved.
    """
    system, messages = _conversation(params)
    check_format(params.response_format)
    resolved = await resolve_model(models, params, settings_of(params))
    tools, hosted = _tools(params, resolved)
    if _is_plain(params):
        resolved = models.connections.text_only(resolved)
    request = ModelRequest(
        resolved.wire_name,
        system,
        messages,
        tools=tools,
        tool_choice=_choice(params, [*(tool.name for tool in tools), *(tool.name for tool in hosted)]),
        hosted_tools=hosted,
        stream=params.stream,
        vision=resolved.info.vision is not False and resolved.model.capabilities(resolved.wire_name).images,
        reasoning_effort=params.reasoning_effort,
        reasoning_summary=params.reasoning_summary,
        max_output_tokens=params.max_output_tokens or resolved.info.max_output_tokens,
        response_format=format_of(params.response_format),
        settings=all_settings(params, resolved),
        announce_blocks=params.stream,
        # Not for a next request, but without objects of the schemas.
        written=WrittenMessages(WrittenBudget()),
    )
    return resolved, request


def _is_plain(params: CompleteParams) -> bool:
    """Return whether the answer can only be text, which declared adapters may read with a separate handler."""
    return not (params.stream or params.tools or params.hosted_tools)


def _conversation(params: CompleteParams) -> tuple[str, list[Message]]:
    if (params.prompt is None) == (params.messages is None):
        raise InvalidRequestError("expected either prompt or messages")
    messages = params.messages
    if messages is None:
        messages = [wire.Message(role="user", content=params.prompt)]
    if not messages:
        raise InvalidRequestError("messages: expected a message of the user")
    if messages[-1].role != "user" and not _is_paused(messages[-1]):
        raise InvalidRequestError("messages: expected the last message to have the role 'user'")
    return to_conversation(messages)


def _is_paused(message: wire.Message) -> bool:
    """Return whether a message may be an answer that the provider has paused, to be continued by another call."""
    blocks = message.all_blocks()
    return any(block.execution_side == "provider" for block in blocks) and not any(
        isinstance(block, wire.ToolUseBlock) for block in blocks
    )


def _tools(params: CompleteParams, resolved: ResolvedModel) -> tuple[list[ToolSpec], list[HostedTool]]:
    """Return the functions and the hosted tools of a request.

    Where the model has no native form of a built-in tool that the caller runs, the tool is offered as a function.
    """
    can = resolved.model.capabilities(resolved.wire_name).hosted_tools
    tools: dict[str, ToolSpec] = {}
    hosted: dict[str, HostedTool] = {}

    def add(where: str, tool: ToolSpec | HostedTool) -> None:
        if tool.name in tools or tool.name in hosted:
            raise InvalidRequestError(f"{where}: duplicate tool {tool.name!r}")
        if isinstance(tool, ToolSpec):
            tools[tool.name] = tool
        else:
            hosted[tool.name] = tool

    for place, tool in enumerate(params.tools):
        where = f"tools[{place}]"
        if tool.built_in:
            add(where, _built_in(tool.function.name, tool.options, can, where, resolved))
        else:
            add(where, _function(tool, where))
    for place, given in enumerate(params.hosted_tools):
        where = f"hostedTools[{place}]"
        name, options = (given, {}) if isinstance(given, str) else (given.name, given.options())
        add(where, _built_in(name, options, can, where, resolved))
    return list(tools.values()), list(hosted.values())


def _function(tool: Tool, where: str) -> ToolSpec:
    function = tool.function
    problem = name_problem(function.name, MAX_CLIENT_NAME)
    if problem is None and function.parameters is not None:
        problem = schema_problem(function.parameters, "function.parameters")
    if problem is not None:
        raise InvalidRequestError(f"{where}: {problem}")
    if tool.options:
        raise InvalidRequestError(f"{where}: only built-in tools have options")
    return ToolSpec(function.name, function.description, _schema(function, where), strict=function.strict)


def _schema(function: FunctionDetails, where: str) -> ToolSchema:
    try:
        return ToolSchema.of(function.parameters or dict(NO_PARAMETERS))
    except (TypeError, ValueError, RecursionError) as error:
        # A caller in Python may give any object.
        problem = f"function.parameters: the schema cannot be written as JSON: {error}"
        raise InvalidRequestError(f"{where}: {problem}") from None


def _built_in(
    given: str, options: JsonObject, can: Collection[str], where: str, resolved: ResolvedModel
) -> ToolSpec | HostedTool:
    """Return the built-in tool ``given``: the model's own, or a function if the caller runs it anyway."""
    name = ALIASES.get(given, given)
    if name in can:
        return HostedTool(name, options, untranslated=True)
    function = portable_function(name)
    if function is None:
        there = ", ".join(sorted({*can, *RUN_BY_CALLER}))
        raise InvalidRequestError(
            f"{where}: {resolved.info.id} has no built-in tool {given!r}, expected one of {there}"
        )
    if options:
        raise InvalidRequestError(f"{where}: {resolved.info.id} gets {given!r} as a function, which has no options")
    return ToolSpec(function.name, function.description, _schema(function, where))


def _choice(params: CompleteParams, names: list[str]) -> ToolChoice | None:
    choice = params.tool_choice
    if choice is None:
        return None
    if (choice.mode == "specific") != (choice.tool_name is not None):
        raise InvalidRequestError("toolChoice: expected toolName in the mode 'specific', and in no other mode")
    if choice.mode in ("required", "specific") and not names:
        raise InvalidRequestError(f"toolChoice: expected tools for the mode {choice.mode!r}")
    if choice.tool_name is not None and choice.tool_name not in names:
        raise InvalidRequestError(
            f"toolChoice names the unknown tool {choice.tool_name!r}, expected one of {', '.join(sorted(names))}"
        )
    return ToolChoice(choice.mode, choice.tool_name, choice.parallel)


def all_settings(params: CompleteParams, resolved: ResolvedModel) -> dict[str, Any]:
    """Return the settings of a request, with those of :data:`NAMES` under the provider's names.

    Raises:
        InvalidRequestError: the model's adapter has no such setting, or the setting is given twice.
    """
    settings = dict(params.settings)
    requested = {name: value for name in NAMES if (value := getattr(params, name)) is not None}
    if not requested and not settings:
        return settings
    known = _known_settings(resolved)
    if settings and not known:
        raise InvalidRequestError(f"the adapter {resolved.model.adapter_name!r} has no settings")
    for name, value in requested.items():
        key = next((key for key in NAMES[name] if key in known), None)
        if key is None:
            raise InvalidRequestError(f"the adapter {resolved.model.adapter_name!r} has no setting for {name!r}")
        if key in settings:
            raise InvalidRequestError(f"{name!r} is also given as the setting {key!r}")
        settings[key] = value
    return settings


def _known_settings(resolved: ResolvedModel) -> frozenset[str]:
    """Return the names of the settings of a model's adapter."""
    from jumpseat.adapters.declared.pipeline import DeclaredCaller
    from jumpseat.adapters.declared.settings import wire_declaration
    from jumpseat.adapters.declared.view import AdapterView
    from jumpseat.adapters.transport.http import HttpModel

    if not isinstance(resolved.model, HttpModel):
        return frozenset()
    caller = resolved.model.caller
    declaration = caller.declaration if isinstance(caller, DeclaredCaller) else wire_declaration(caller.wire_name)
    return frozenset(AdapterView(declaration, resolved.wire_name).schema)
