"""Turn the messages of a conversation into the steps of a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_object, as_text
from jumpseat_testkit.protocols import PROTOCOLS, ProtocolName
from jumpseat_testkit.record.noise import Noise
from jumpseat_testkit.record.values import Values

JsonObject: TypeAlias = dict[str, Any]
Messages: TypeAlias = Sequence[tuple[str, JsonObject]]

_PROVIDER: Final[JsonObject] = {"type": "openai", "baseUrl": "${model}", "apiKey": "none"}
_OPENING: Final = ("session.create", "session.resume")
_FOLDER_KEYS: Final = ("cwd", "workingDirectory")
_TOOL_ID: Final = "toolCallId"


class _Pending(Struct):
    """A request of the client that is not answered yet. ``step`` is its place among the steps."""

    step: int
    method: str
    others: int = 0


class _Group(Struct):
    """Events between two messages of the client."""

    events: list[JsonObject] = field(default_factory=list[JsonObject])
    calls: set[str] = field(default_factory=set[str])
    is_mixed: bool = False


class StepWriter:
    """Makes the steps of a conversation. ``has_model``: a scripted model takes the place of providers."""

    def __init__(self, protocol: ProtocolName, values: Values, noise: Noise, *, has_model: bool) -> None:
        self._protocol = PROTOCOLS[protocol]
        self._feed = self._protocol.feed
        self._values = values
        self._noise = noise
        self._has_model = has_model
        self._steps: list[JsonObject] = []
        self._group = _Group()
        self._requests: dict[Any, _Pending] = {}
        self._questions: dict[Any, JsonObject] = {}
        self._names = 0

    def steps(self, messages: Messages) -> list[JsonObject]:
        """Return the steps, in which ids are marked."""
        for direction, message in messages:
            if direction == "--":
                self._end_group()
                self._steps.append(message)
            elif direction == "->":
                self._sent(message)
            else:
                self._received(message)
        self._end_group()
        return [step for step in self._steps if step]

    # --- the client ---------------------------------------------------------------------------------------------

    def _sent(self, message: JsonObject) -> None:
        method, key = message.get("method"), message.get("id")
        if method is None:
            self._answered(message)
            return
        self._end_group()
        for pending in self._requests.values():
            pending.others += 1
        params = self._params(as_text(method), as_object(message.get("params")))
        if key is None:
            self._steps.append({"send": {"method": method, **({"params": params} if "params" in message else {})}})
            return
        self._requests[_key(key)] = _Pending(len(self._steps), as_text(method))
        self._steps.append({"call": method, **({"params": params} if "params" in message else {})})

    def _params(self, method: str, params: JsonObject) -> JsonObject:
        found: JsonObject = self._values.sent(params)
        if method in _OPENING:
            found = {
                name: value
                for name, value in found.items()
                if name not in self._noise.of_the_client and value not in (None, False)
            }
            if self._has_model:
                found |= {"provider": dict(_PROVIDER), "model": found.get("model") or "scripted"}
        return {
            name: "${folder}" if name in _FOLDER_KEYS and not str(value).startswith("${folder}") else value
            for name, value in found.items()
        }

    def _answered(self, message: JsonObject) -> None:
        """Make a step of the client's answer to a request of the server."""
        question = self._questions.pop(_key(message.get("id")), None)
        if question is None:
            return
        self._end_group()
        for pending in self._requests.values():
            pending.others += 1
        part = "error" if "error" in message else "result"
        params = self._values.received(as_object(question.get("params")))
        self._steps.append(
            {
                "answer": question["method"],
                **({"params": params} if params else {}),
                part: self._values.sent(message.get(part)),
            }
        )

    # --- the server ---------------------------------------------------------------------------------------------

    def _received(self, message: JsonObject) -> None:
        method = message.get("method")
        if method is None:
            self._responded(message)
        elif "id" in message:
            self._questions[_key(message["id"])] = message
        elif (event := self._feed.event_of(message)) is not None:
            self._happened(event)

    def _responded(self, message: JsonObject) -> None:
        pending = self._requests.pop(_key(message.get("id")), None)
        if pending is None:
            return
        step = self._steps[pending.step]
        part = "error" if "error" in message else "result"
        pattern = self._result(message.get(part), part)
        if not pending.others:
            step[part] = pattern if pattern is not None else "<any>"
            return
        # Other messages of the client came before the response: the script must not wait for it.
        self._end_group()
        self._names += 1
        name = f"request-{self._names}"
        params = {"params": step.pop("params")} if "params" in step else {}
        step["send"] = {"id": name, "method": step.pop("call"), **params}
        self._steps.append({"expect": {"id": name, **({} if pattern is None else {part: pattern})}})

    def _result(self, value: Any, part: str) -> Any:
        pattern = self._values.received(value)
        if part == "error":
            return {name: inner for name, inner in as_object(pattern).items() if name in ("code", "message")}
        return pattern

    def _happened(self, event: JsonObject) -> None:
        kind = as_text(event.get(self._feed.kind))
        call = _call_of(event)
        if call:
            self._group.calls.add(call)
            self._group.is_mixed |= len(self._group.calls) > 1
        if kind in self._noise.events:
            return
        if kind in self._noise.chunks:
            if not any(one.get(self._feed.kind) == kind for one in self._group.events[-1:]):
                self._group.events.append({self._feed.kind: kind})
            return
        self._group.events.append(self._event(event))

    def _event(self, event: JsonObject) -> JsonObject:
        # The envelope of an event is checked by the rules of every conversation.
        kept = (
            {name: event[name] for name in (self._feed.kind, "data") if name in event} if "data" in event else event
        )
        if not self._noise.members:
            kept = event
        return {
            name: value if name == self._feed.kind else self._values.received(value, name)
            for name, value in kept.items()
        }

    def _end_group(self) -> None:
        group, self._group = self._group, _Group()
        for is_mixed, events in _runs(group, self._feed.kind):
            self._steps.append({"events_in_any_order" if is_mixed and len(events) > 1 else "events": events})


def _runs(group: _Group, kind: str) -> Iterator[tuple[bool, list[JsonObject]]]:
    """Yield events in their order, but those of several tool calls that run at the same time together."""
    if not group.events:
        return
    if not group.is_mixed:
        yield False, group.events
        return
    run: list[JsonObject] = []
    is_mixed = False
    for event in group.events:
        # What a turn ends with follows all of its calls.
        is_of_call = _call_of(event) != ""
        if run and is_of_call != is_mixed:
            yield is_mixed, run
            run = []
        is_mixed = is_of_call
        run.append(event)
    yield is_mixed, run


def _call_of(event: JsonObject) -> str:
    """Return the id of the tool call that an event is about, also that of a question about one."""
    data = as_object(event.get("data", event))
    return as_text(data.get(_TOOL_ID) or as_object(data.get("permissionRequest")).get(_TOOL_ID))


def _key(message_id: Any) -> tuple[str, str]:
    return type(message_id).__name__, repr(message_id)
