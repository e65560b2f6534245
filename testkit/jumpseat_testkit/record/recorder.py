"""Make a script of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.protocols import PROTOCOLS, ProtocolName
from jumpseat_testkit.record.model import RETRIED, ModelAnswers
from jumpseat_testkit.record.noise import lean, noise_of
from jumpseat_testkit.record.steps import StepWriter
from jumpseat_testkit.record.stored import StoredSession
from jumpseat_testkit.record.values import Values
from jumpseat_testkit.record.writing import write_script

JsonObject: TypeAlias = dict[str, Any]

_PROMPTS: Final = ("session.send", "session/prompt")


def record_conversation(
    messages: Sequence[tuple[str, JsonObject]],
    protocol: ProtocolName,
    folders: Mapping[str, str],
    *,
    files: Mapping[str, Any] | None = None,
    everything: bool = False,
    tail: Sequence[JsonObject] = (),
    about: str = "",
) -> str:
    """Return the script of a conversation as text.

    ``folders`` are recorded paths by what stands in their places, ``files`` those that the server finds in its
    folder. ``everything`` leaves nothing out. ``tail`` are messages that follow the conversation. ``about`` is said
    in the first line.

    Raises:
        ScriptError: there is no message of the client.
    """
    if not any(direction == "->" for direction, _ in messages):
        raise ScriptError("nothing to record: the client has sent no message")
    answers = ModelAnswers(protocol)
    answers.read(messages)
    model = answers.script()
    values = Values(folders)
    # The client's handshake is among the messages.
    head: JsonObject = {"protocol": protocol}
    if model is not None:
        head["model"] = values.sent(model)
    if files:
        head["files"] = dict(files)
    noise, feed_kind = noise_of(protocol, everything=everything), PROTOCOLS[protocol].feed.kind
    writer = StepWriter(protocol, values, noise, has_model=model is not None)
    found = [
        lean(step, feed_kind, noise)
        for step in writer.steps([*map(_as_played, messages), *(("--", _tail_step(step, values)) for step in tail)])
    ]
    chosen, steps = values.name([head, *found])
    head, *steps = steps
    # Only now it is known which ids have names: those without one say nothing.
    steps = [lean(step, feed_kind, noise) for step in steps]
    if chosen:
        steps.insert(0, {"set": chosen})
    return write_script(head, _with_remarks(steps), about)


def record_session(events: Sequence[JsonObject], options: Mapping[str, Any], *, everything: bool = False) -> str:
    """Return a script of a stored session: its client does the same, and the session is as before after a restart.

    Raises:
        ScriptError: the session cannot be played again by a client alone.
    """
    session = StoredSession(events, options)
    if not session.session_id:
        raise ScriptError("the session has no events to record")
    folders = {session.folder: "${folder}"} if session.folder else {}
    return record_conversation(
        session.messages(),
        "copilot",
        folders,
        files=session.files(),
        everything=everything,
        tail=_after_restart(session.session_id, events),
        about=f"Recorded from the session {session.session_id}.",
    )


def _as_played(entry: tuple[str, JsonObject]) -> tuple[str, JsonObject]:
    """Return a message of the conversation as it is when the script is played.

    A failure of the model that a server would retry is played as one that it does not: the text and the status of
    the error are others.
    """
    direction, message = entry
    event = as_object(as_object(message.get("params")).get("event"))
    data = as_object(event.get("data"))
    status = data.get("statusCode")
    if event.get("type") != "session.error" or not isinstance(status, int):
        return entry
    if status < 500 and status not in RETRIED:
        return entry
    kept = {name: value for name, value in data.items() if name not in ("message", "statusCode")}
    return direction, {**message, "params": {**message["params"], "event": {**event, "data": kept}}}


def _tail_step(step: JsonObject, values: Values) -> JsonObject:
    return {name: (values.received if name == "result" else values.sent)(value) for name, value in step.items()}


def _after_restart(session_id: str, events: Sequence[JsonObject]) -> list[JsonObject]:
    """Return steps that find the conversation again in another process."""
    answers = [
        {"data": {"content": content}}
        for event in events
        if event.get("type") == "assistant.message" and not event.get("agentId")
        if (content := as_object(event.get("data")).get("content"))
    ]
    messages: JsonObject = {"events": {"$has": answers}} if answers else {}
    return [
        {"restart": True},
        {"call": "session.resume", "params": {"sessionId": session_id}},
        {"call": "session.getMessages", "params": {"sessionId": session_id}, "result": messages},
    ]


def _with_remarks(steps: Sequence[JsonObject]) -> list[tuple[str, JsonObject]]:
    found: list[tuple[str, JsonObject]] = []
    prompts = 0
    for step in steps:
        remark = ""
        method = step.get("call") or as_object(step.get("send")).get("method")
        if (
            method in _PROMPTS
            or as_object(as_object(as_object(step.get("send")).get("params")).get("action")).get("type")
            == "chat/turnStarted"
        ):
            prompts += 1
            remark = f"Prompt {prompts}"
        elif "restart" in step:
            remark = "The server is killed, and another one goes on."
        found.append((remark, step))
    return found
