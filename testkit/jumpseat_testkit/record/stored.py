"""Make a conversation of the events of a stored session: what its client must have sent, and got."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from jumpseat_protocol.json_values import as_list, as_object, as_text

JsonObject: TypeAlias = dict[str, Any]
Messages: TypeAlias = list[tuple[str, JsonObject]]

_DECISIONS: Final[Mapping[str, JsonObject]] = {
    "approved": {"kind": "approve-once"},
    "approved-for-session": {"kind": "approve-once"},
    "approved-for-location": {"kind": "approve-once"},
    "cancelled": {"kind": "user-not-available"},
    "denied-interactively-by-user": {"kind": "reject"},
    "denied-no-approval-rule-and-could-not-request-from-user": {"kind": "user-not-available"},
}
"""The answers to a permission question that have these outcomes."""

_ASKED_TOGETHER: Final = ("permission.requested", "external_tool.requested", "tool.execution_start")
"""Events of calls that run at the same time: their questions come in any order, and are answered after them."""
_OF_THE_START: Final[Mapping[str, str]] = {
    "selectedModel": "model",
    "reasoningEffort": "reasoningEffort",
    "sessionLimits": "sessionLimits",
}
"""Options of a session by their names in its first event."""
_KEPT_OPTIONS: Final = ("availableTools", "excludedTools", "reasoningEffort", "streaming", "systemMessage")


_FILE_NAME: Final = re.compile(r"[\w-][\w.-]*(?:/[\w.-]+)*")
_INTERRUPTED: Final = "The execution of this tool, or a previous tool was interrupted"
"""The error of a call that an abort has ended."""


class StoredSession:
    """The events of a session, and the options that are stored with it."""

    def __init__(self, events: Sequence[JsonObject], options: Mapping[str, Any]) -> None:
        self._events = events
        self._options = options
        self._last_id = 0
        self.session_id = as_text(as_object(as_object(events[0]).get("data")).get("sessionId")) if events else ""
        context = as_object(as_object(as_object(events[0]).get("data")).get("context")) if events else {}
        self.folder = as_text(context.get("cwd"))
        self._results = {
            as_text(as_object(event.get("data")).get("toolCallId")): as_object(event.get("data"))
            for event in events
            if event.get("type") == "tool.execution_complete"
        }

    def messages(self) -> Messages:
        """Return the conversation of a client that does the same again."""
        found: Messages = []
        answers: Messages = []
        aborts = self._aborts()
        for number, event in enumerate(self._events):
            data, kind = as_object(event.get("data")), event.get("type")
            if kind not in _ASKED_TOGETHER:
                found += answers
                answers = []
            if kind == "session.start":
                found += self._request("session.create", self._creation(data), {"sessionId": self.session_id})
            elif kind == "session.resume":
                found.append(("--", {"restart": True}))
                found += self._request("session.resume", self._creation(data), {"sessionId": self.session_id})
            elif kind == "user.message" and not event.get("agentId") and not data.get("source"):
                found += self._request("session.send", {**self._id(), **self._prompt(data)}, {})
            elif number in aborts:
                found += self._request("session.abort", self._id(), {})
            elif (change := _change(kind, data)) is not None:
                method, params = change
                found += self._request(method, {**self._id(), **params}, {})
            found.append(("<-", self._as_notification(event)))
            if not self._is_withdrawn(kind, data, number, aborts):
                answers += self._answer(kind, data, self._events[number + 1 :])
        return [*found, *answers]

    def _aborts(self) -> set[int]:
        """Return the places where a run was aborted: the log has what was withdrawn before the abort itself."""
        found: set[int] = set()
        first: int | None = None
        for number, event in enumerate(self._events):
            data, kind = as_object(event.get("data")), event.get("type")
            if kind == "abort":
                found.add(number if first is None else first)
            elif first is None and _is_withdrawal(kind, data):
                first = number
            if kind in ("abort", "user.message", "session.resume"):
                first = None
        return found

    def _is_withdrawn(self, kind: Any, data: JsonObject, number: int, aborts: Collection[int]) -> bool:
        """Return whether a question was withdrawn by an abort: nobody has answered it."""
        if kind != "permission.requested":
            return False
        later = self._events[number + 1 :]
        settled = next(
            (
                place
                for place, event in enumerate(later, number + 1)
                if event.get("type") == "permission.completed"
                and as_object(event.get("data")).get("requestId") == data.get("requestId")
            ),
            None,
        )
        return settled in aborts

    def _answer(self, kind: Any, data: JsonObject, later: Sequence[JsonObject]) -> Messages:
        """Return what the client has answered to a question."""
        request = {**self._id(), "requestId": data.get("requestId")}
        if kind == "permission.requested" and not data.get("resolvedByHook"):
            outcome = _settled(later, "permission.completed", data.get("requestId"))
            result = as_object(as_object(outcome).get("result"))
            decision = _DECISIONS.get(as_text(result.get("kind")))
            if decision is None or outcome is None:
                return []
            if result.get("feedback"):
                decision = {**decision, "feedback": result["feedback"]}
            method = "session.permissions.handlePendingPermissionRequest"
            return self._request(method, {**request, "result": decision}, {"success": True})
        if kind == "external_tool.requested":
            result = self._results.get(as_text(data.get("toolCallId")))
            if result is None or _settled(later, "external_tool.completed", data.get("requestId")) is None:
                return []
            answer = _tool_answer(result)
            return self._request("session.tools.handlePendingToolCall", {**request, **answer}, {"success": True})
        return []

    def _creation(self, start: JsonObject) -> JsonObject:
        kept = {name: self._options[name] for name in _KEPT_OPTIONS if self._options.get(name) is not None}
        kept |= {option: start[name] for name, option in _OF_THE_START.items() if start.get(name) is not None}
        folder = as_text(as_object(start.get("context")).get("cwd"))
        kept |= {"workingDirectory": folder} if folder and folder != self.folder else {}
        asked = any(event.get("type") == "permission.requested" for event in self._events)
        more = {"tools": tools} if (tools := [*self._tools()]) else {}
        return {**self._id(), **kept, **more, **({"requestPermission": True} if asked else {})}

    def _tools(self) -> Iterator[JsonObject]:
        """Yield the tools of the client that were called, or that were approved and named."""
        asked: dict[str, JsonObject] = {}
        for event in self._events:
            data = as_object(event.get("data"))
            question = as_object(data.get("permissionRequest"))
            if event.get("type") == "permission.requested" and question.get("kind") == "custom-tool":
                asked[as_text(question.get("toolName"))] = {"description": question.get("toolDescription") or ""}
            elif event.get("type") == "external_tool.requested":
                asked.setdefault(as_text(data.get("toolName")), {"skipPermission": True, "description": ""})
        for name, more in asked.items():
            yield {"name": name, **more, "parameters": {"type": "object"}, "overridesBuiltInTool": True}

    def _prompt(self, data: JsonObject) -> JsonObject:
        found: JsonObject = {"prompt": as_text(data.get("content"))}
        if data.get("agentMode") not in (None, "interactive"):
            found["agentMode"] = data["agentMode"]
        kept = as_list(data.get("attachments"))
        return {**found, "attachments": kept} if kept else found

    def _id(self) -> JsonObject:
        return {"sessionId": self.session_id}

    def _request(self, method: str, params: JsonObject, result: JsonObject) -> Messages:
        self._last_id += 1
        return [
            ("->", {"id": self._last_id, "method": method, "params": params}),
            ("<-", {"id": self._last_id, "result": result}),
        ]

    def _as_notification(self, event: JsonObject) -> JsonObject:
        return {"method": "session.event", "params": {"sessionId": self.session_id, "event": event}}

    # --- files --------------------------------------------------------------------------------------------------

    def files(self) -> dict[str, Any]:
        """Return the files of the folder that tools have read before anything has changed them, by their names.

        A file is its text, or an object with its bytes as ``base64``.
        """
        found: dict[str, Any] = {f"{name}/.keep": "" for name in self._other_folders()}
        written: set[str] = set()
        for event in self._events:
            data = as_object(event.get("data"))
            if event.get("type") != "tool.execution_start":
                continue
            arguments, result = (
                as_object(data.get("arguments")),
                self._results.get(as_text(data.get("toolCallId")), {}),
            )
            name = self._inside(as_text(arguments.get("path") or arguments.get("filePath")))
            if name is None or name in written or name in found:
                continue
            if data.get("toolName") == "view" and result.get("success") is True and not arguments.get("view_range"):
                found |= _seen(name, as_object(result.get("result")))
            else:
                written.add(name)
        return found

    def _other_folders(self) -> Iterator[str]:
        for event in self._events:
            folder = as_text(as_object(as_object(event.get("data")).get("context")).get("cwd"))
            if folder != self.folder and (name := self._inside(folder)) is not None:
                yield name

    def _inside(self, path: str) -> str | None:
        if not self.folder or not path:
            return None
        try:
            return PurePath(path).relative_to(self.folder).as_posix() if PurePath(path).is_absolute() else path
        except ValueError:
            return None


def _change(kind: Any, data: JsonObject) -> tuple[str, JsonObject] | None:
    """Return the request of a client, apart from prompts, that an event follows."""
    match kind:
        case "session.model_change" if data.get("source") == "sdk":
            effort = {"reasoningEffort": data["reasoningEffort"]} if data.get("reasoningEffort") else {}
            return "session.model.switchTo", {"modelId": data.get("newModel"), **effort}
        case "session.permissions_changed":
            return "session.permissions.setMode", {"mode": data.get("mode")}
        case "session.compaction_start" if data.get("trigger") == "manual":
            return "session.history.compact", {}
        case _:
            return None


def _is_withdrawal(kind: Any, data: JsonObject) -> bool:
    """Return whether an event may be the first consequence of an abort."""
    if kind == "permission.completed":
        return as_object(data.get("result")).get("kind") == "cancelled"
    error = as_object(data.get("error"))
    return kind == "tool.execution_complete" and as_text(error.get("message")).startswith(_INTERRUPTED)


def _settled(later: Sequence[JsonObject], kind: str, request: Any) -> JsonObject | None:
    for event in later:
        data = as_object(event.get("data"))
        if event.get("type") == kind and data.get("requestId") == request:
            return data
    return None


def _tool_answer(result: JsonObject) -> JsonObject:
    if result.get("success") is True:
        return {"result": as_text(as_object(result.get("result")).get("content"))}
    content, error = as_object(result.get("result")).get("content"), as_object(result.get("error"))
    if error.get("code") == "failure" and as_text(content).endswith(f"Error: {error.get('message')}"):
        # The server has written the answer for a tool that has raised an error.
        return {"error": error.get("message")}
    kind = error.get("code") if error.get("code") in ("rejected", "denied") else "failure"
    texts = {"textResultForLlm": content or error.get("message"), "error": error.get("message")}
    return {"result": {"resultType": kind, **texts}}


def _seen(name: str, result: JsonObject) -> dict[str, Any]:
    """Return the files that the result of ``view`` shows: a text, an image, or the names in a folder."""
    content = as_text(result.get("content"))
    for shown in map(as_object, as_list(result.get("binaryResultsForLlm"))):
        if isinstance(shown.get("data"), str):
            return {name: {"base64": shown["data"]}}
    if (text := _without_numbers(content)) is not None:
        return {name: text}
    listed = [line.strip() for line in content.splitlines()]
    if listed and all(_FILE_NAME.fullmatch(line) for line in listed):
        return {f"{name.rstrip('/')}/{line}": "" for line in listed}
    return {}


def _without_numbers(text: str) -> str | None:
    """Return a file's text from lines with numbers, ``None`` if they have none."""
    lines = text.split("\n")
    parts = [line.partition(". ") for line in lines]
    if any(number != str(place) or not dot for place, (number, dot, _) in enumerate(parts, 1)):
        return None
    return "\n".join(rest for _, _, rest in parts)
