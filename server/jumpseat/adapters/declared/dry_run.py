"""Run the functions of a declared adapter on an invented conversation. Nothing is sent to the provider.

A dry run prepares requests from a conversation with text, an image, a tool call and its result, decodes answers in
the format of the adapter (see ``sample_answers.py``), and ends the call, as for a real one. Values from outside of
the declaration, such as keys, are replaced by their names in angle brackets; ``setup`` is run as it is.
"""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Outcome, PreparedCall
from jumpseat.adapters.declared.declaration import BASE_URL, Declaration
from jumpseat.adapters.declared.describe import source_of_entry
from jumpseat.adapters.declared.functions import TIMEOUT_S
from jumpseat.adapters.declared.merged import drops_tools
from jumpseat.adapters.declared.pipeline import DeclaredCaller, is_computed
from jumpseat.adapters.declared.sample_answers import (
    ARGUMENTS,
    TEXT,
    TOOL,
    Answer,
    answers_in,
    declared_answers,
    format_of,
)
from jumpseat.adapters.declared.schema import check_value, default_of, is_enabled
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest, ResponseFormat, ToolSchema, ToolSpec
from jumpseat.declared.values import problem_in_json
from jumpseat.errors import AdapterError, ConfigError, InvalidRequestError, JumpseatError, ProviderError

_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
_WEATHER: Final = ToolSpec(
    TOOL,
    "Return the weather of a city.",
    ToolSchema.of({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
)
_SCHEMA: Final = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}

_REFUSED: Final = b'{"error": {"message": "an invented error, to try on_exit", "code": "invented"}}'


class Problem(Struct, frozen=True):
    """A problem of a function of the adapter. ``source`` is its place in the code, if that is known."""

    function: str
    source: str
    text: str


class DryRun(Struct, frozen=True):
    """The result: the problems, the reason why answers were not decoded, and a warning, if there are any."""

    problems: tuple[Problem, ...] = ()
    untried: str = ""
    warning: str = ""


async def dry_run(caller: DeclaredCaller, model: str, *, vision: bool) -> DryRun:
    """Run the functions of an adapter, and return what is wrong with them.

    Raises:
        ConfigError: the declaration is invalid, or a value in it is missing.
    """
    declaration = caller.declaration
    if not declaration.handlers and not any(map(is_computed, declaration.settings.values())):
        return DryRun()
    run = _Run(_without_secrets(caller), model, vision=vision)
    await run.settings()
    answers, untried = await run.answers()
    conversation = _conversation(model, vision=vision)
    if not any(answer.calls for answer in answers):
        await run.call(conversation, None)
    for answer in answers:
        request = conversation if answer.calls else _question(model)
        await run.call(replace(request, stream=answer.body is None), answer)
    await run.other_requests()
    return DryRun(tuple(run.problems), untried, (drops_tools(declaration) if caller.wire is None else ""))


class _Run:
    """The calls of one dry run, and the problems that they have found."""

    def __init__(self, caller: DeclaredCaller, model: str, *, vision: bool) -> None:
        self._caller = caller
        self._declaration = caller.declaration
        self._model = model
        self._vision = vision
        self.problems: list[Problem] = []

    async def settings(self) -> None:
        """Validate the default values of the settings, with the functions that do so."""
        view = AdapterView(self._declaration, self._model)
        for key, entry in view.schema.items():
            if callable(entry.check) and is_enabled(key, entry, view):
                default = default_of(key, entry, view)
                try:
                    if default is not None:
                        check_value(key, entry, default, view)
                except InvalidRequestError as error:
                    self._append(Problem(f"schema.{key}", "", f"the default of {error}"))

    async def answers(self) -> tuple[list[Answer], str]:
        """Return the answers to decode, and the reason if there are none."""
        if self._declaration.samples:
            return declared_answers(self._declaration.samples), ""
        call = await self._prepared(_question(self._model))
        if call is None:
            return [], ""
        stream = AdapterView(self._declaration, self._model).opts.get("stream") is not False
        usage = bool(as_object(call.request.body.get("stream_options")).get("include_usage"))
        await self._end(call, Outcome(200))
        name = format_of(self._caller.wire, call.request.url)
        if name is None:
            if self._declaration.handler("parse_chat") is None:
                return [], ""
            return [], (
                "parse_chat was not run, because the format of the provider's answers is unknown: declare one of "
                "them in samples."
            )
        found = answers_in(name, stream=stream, usage=usage)
        return [answer for answer in found if not answer.calls or self._collects_calls()], ""

    def _collects_calls(self) -> bool:
        parse_chat = self._declaration.handler("parse_chat")
        return parse_chat is None or self._caller.functions_of(self._model).takes("parse_chat", "tools")

    async def call(self, request: ModelRequest, answer: Answer | None) -> None:
        """Prepare a request, decode ``answer``, and end the call."""
        call = await self._prepared(request)
        if call is None:
            return
        if answer is not None:
            await self._decode(call, answer)
        await self._end(call, Outcome(200, {"content-type": "application/json"}))

    async def other_requests(self) -> None:
        """Make the requests that only some handlers are for, and end a call that was refused."""
        handler = self._declaration.handler
        if handler("build_structured_output") is not None:
            wanted = ResponseFormat("answer", _SCHEMA, strict=True)
            await self.call(replace(_question(self._model), response_format=wanted), None)
        if handler("parse_inline") is not None:
            await self._inline()
        if handler("on_exit") is not None and (call := await self._prepared(_question(self._model))) is not None:
            await self._end(call, Outcome(401, {"content-type": "application/json"}, _REFUSED))

    async def _inline(self) -> None:
        text_only = replace(self._caller, text_only=True)
        request = replace(_question(self._model), stream=False)
        call = await self._prepared(request, text_only)
        if call is None:
            return
        samples = [answer for answer in declared_answers(self._declaration.samples) if answer.body is not None]
        name = format_of(self._caller.wire, call.request.url)
        if not self._declaration.samples and name is not None:
            samples = answers_in(name, stream=False, usage=False)
        says = next((answer for answer in samples if not answer.calls), None)
        if says is not None:
            await self._decode(call, says, "parse_inline")
        await self._end(call, Outcome(200))

    async def _prepared(self, request: ModelRequest, caller: DeclaredCaller | None = None) -> PreparedCall | None:
        try:
            call = await (caller or self._caller).prepare(request)
        except ConfigError:
            raise
        except JumpseatError as error:
            self._add(error, "on an invented conversation", "setup")
            return None
        problem = problem_in_json(call.request.body, "body")
        if problem is not None:
            self._append(Problem("body", "", f"its request cannot be written as JSON: {problem}"))
        return call

    async def _decode(self, call: PreparedCall, answer: Answer, reader: str = "parse_chat") -> None:
        events: list[ModelEvent] = []

        def read() -> None:
            decoder = call.decoder
            if answer.body is not None:
                events.extend(decoder.whole(answer.body))
                return
            for name, data in answer.frames:
                events.extend(decoder.feed(name, data))
                if events and isinstance(events[-1], Completed):
                    return
            events.extend(decoder.finish())

        try:
            if call.decode is None:
                read()
            else:
                await call.decode(read)
        except (JumpseatError, LookupError, TypeError, ValueError) as error:
            self._add(error, f"on {answer.description}", reader)
            return
        self._compare(answer, events, reader)

    def _compare(self, answer: Answer, events: list[ModelEvent], reader: str) -> None:
        completed = events[-1] if events else None
        message = completed.message if isinstance(completed, Completed) else AssistantMessage([])
        if self._declaration.handler(reader) is None:
            return
        if answer.text is not None and message.text() != answer.text:
            got = message.text()
            self._found(reader, f"must find the text {answer.text!r} in {answer.description}, found {got!r}")
        if answer.calls is not None and [use.name for use in message.tool_uses()] != list(answer.calls):
            found = ", ".join(use.name for use in message.tool_uses()) or "none"
            wanted = ", ".join(answer.calls) or "none"
            self._found(reader, f"must find the calls {wanted} in {answer.description}, found {found}")
        elif answer.calls == (TOOL,) and not self._declaration.samples:
            arguments = message.tool_uses()[0].arguments
            if arguments != ARGUMENTS:
                got = message.tool_uses()[0].arguments_json
                wanted = json.dumps(ARGUMENTS)
                self._found(reader, f"must find the arguments {wanted} in {answer.description}, found {got!r}")

    def _found(self, handler: str, text: str) -> None:
        source = self._caller.functions_of(self._model).place_of(handler)
        self._append(Problem(handler, source, f"its handler {handler} ({source}) {text}"))

    async def _end(self, call: PreparedCall, outcome: Outcome) -> None:
        if call.on_end is None:
            return
        try:
            with anyio.fail_after(TIMEOUT_S):
                await call.on_end(outcome)
        except AdapterError as error:
            self._add(error, f"after an answer with the status {outcome.status}", "on_exit")

    def _add(self, error: Exception, on: str, reader: str) -> None:
        owner = f"adapter {self._declaration.name!r}: "
        text = str(error).removeprefix(owner)
        if isinstance(error, AdapterError):
            detail = f": {error.detail}" if error.detail else ""
            self._append(Problem(error.function, error.source, f"{text}{detail}, {on}"))
        elif isinstance(error, ProviderError):
            self._append(Problem(reader, "", f"{text}, {on}"))
        else:
            self._append(Problem(reader, "", f"{type(error).__name__}: {text}, {on}"))

    def _append(self, problem: Problem) -> None:
        """Keep the first problem of each line of code."""
        if all((known.function, known.source) != (problem.function, problem.source) for known in self.problems):
            self.problems.append(problem)


def _without_secrets(caller: DeclaredCaller) -> DeclaredCaller:
    """Return a caller that looks nothing up, and raises the failures of ``on_exit`` and ``teardown``."""
    return replace(
        caller,
        session_values=_placeholders(caller.declaration),
        endpoint=replace(caller.endpoint, api_key="<api_key>", bearer_token=None),
        token=None,
        key=None,
        strict=True,
    )


def _placeholders(declaration: Declaration) -> dict[str, Any]:
    view = AdapterView(declaration.model_copy(update={"settings": {}}))
    found: dict[str, Any] = {}
    for name, raw in declaration.env.items():
        if source_of_entry(view, name, raw) in ("command", "file", "variable", "function"):
            found[name] = "https://provider.invalid" if name == BASE_URL else f"<{name}>"
    return found


def _question(model: str) -> ModelRequest:
    return ModelRequest(model, "Answer in one word.", [UserMessage([TextBlock("Say: ready")])])


def _conversation(model: str, *, vision: bool) -> ModelRequest:
    """Return a request with messages of all kinds, and a tool."""
    first: list[TextBlock | ImageBlock] = [TextBlock("What is the weather here?")]
    if vision:
        first.append(ImageBlock(_PIXEL, "image/png", "here.png"))
    use = ToolUseBlock("call_0", TOOL, json.dumps(ARGUMENTS), ARGUMENTS)
    messages: list[Message] = [
        UserMessage([*first]),
        AssistantMessage([TextBlock("I look."), use]),
        ToolMessage([ToolResultBlock("call_0", TOOL, "Sunny.")]),
        AssistantMessage([TextBlock(TEXT)]),
        UserMessage([TextBlock("And tomorrow?")]),
    ]
    return ModelRequest(model, "Be kind.", messages, tools=[_WEATHER], vision=vision)
