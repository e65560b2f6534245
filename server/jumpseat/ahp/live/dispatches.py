"""Carry out the actions that clients dispatch, by calls of the session, as the other doors do.

The echo of an action is the action of the event that follows. Actions without an event are published at once. A
refused action has no effect.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.live import client_tools, commands, customizations
from jumpseat.ahp.live.mirror import Cause, Mirror
from jumpseat.ahp.states.session import reduce_session
from jumpseat.ahp.states.values import Action, JsonObject
from jumpseat.ahp.translation import attachments, config, forms
from jumpseat.ahp.translation.permissions import decision_of
from jumpseat.ahp.translation.shapes import check_config, problem_of
from jumpseat.ahp.translation.uris import kind_of
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.options import check_allowed
from jumpseat_protocol.permissions import DecidedBy

log = logging.getLogger(__name__)

_ID: Final = re.compile(r"[!-~]{1,200}")
"""Ids of turns: visible ASCII, because they become part of a header."""

NO_TURN: Final = "no turn is active"
TURN_ACTIVE: Final = "a turn is active"
READ_ONLY: Final[Mapping[str, str]] = {
    "chat": "this chat is that of a sub-agent, which clients can only watch",
    "terminal": "this terminal is that of a command of the agent, which clients can only watch",
    "changeset": "this list of changes is that of the agent, which clients can only watch",
}
"""Why actions on the further channels of a session are refused, by their kinds."""
NOT_ASKED: Final = "the question has been answered"


def attempt(channel: str, action: Action, mirror: Mirror | None, act: Callable[[], None]) -> str | None:
    """Carry out an action by ``act``, on the root channel or on those of ``mirror``; return why it is refused."""
    if (problem := problem_of(action)) is not None:
        return problem
    place = "root" if mirror is None else kind_of(channel)
    if str(action["type"]).partition("/")[0] != place:
        return f"{action['type']} does not belong to this channel"
    try:
        act()
    except JumpseatError as error:
        return str(error)
    except Exception:
        # Nobody waits for a response that could tell of it.
        log.exception("internal error: %s", action["type"])
        return "internal error"
    return None


def carry_out(mirror: Mirror, channel: str, action: Action, origin: Origin) -> None:
    """Carry out a valid action on a channel of a session.

    Raises:
        JumpseatError: the action is refused.
    """
    kind = action["type"]
    if (of_runner := _OF_RUNNERS.get(kind)) is not None:
        of_runner(mirror, channel, action, origin)
        return
    if channel not in mirror.uris:
        raise InvalidRequestError(READ_ONLY[kind_of(channel)])
    if kind in _DIRECT:
        mirror.publish(action, origin)
        return
    handler = _HANDLERS.get(kind)
    if handler is None:
        raise InvalidRequestError(f"{kind} is not supported")
    handler(mirror, action, origin)


# --- turns ------------------------------------------------------------------------------------------------------


def _start_turn(mirror: Mirror, action: Action, origin: Origin) -> None:
    turn_id, session, chat = action["turnId"], mirror.session, mirror.chat
    if mirror.state["lifecycle"] != "ready":
        raise InvalidRequestError("the session is not ready")
    asking = mirror.translator.main.turn
    only_asks = asking is not None and asking.only_asks
    if session.queue.running or (chat.get("activeTurn") is not None and not only_asks):
        raise InvalidRequestError(TURN_ACTIVE)
    if any(turn["id"] == turn_id for turn in chat["turns"]):
        raise InvalidRequestError(f"turn {turn_id[:100]!r} exists")
    prompt = _prompt(mirror, turn_id, action["message"])
    _use_model(mirror, action["message"])
    if commands.is_command(mirror, prompt.text):
        if only_asks:
            raise InvalidRequestError(TURN_ACTIVE)
        commands.run(mirror, action, origin)
        return
    cause = Cause("chat/turnStarted", turn_id)
    mirror.expect(cause, origin)
    # Before the messages that a cancelled turn has left waiting.
    session.queue.add_next(prompt)
    session.queue.paused = False
    mirror.tasks.start_soon(_watch, mirror, prompt, cause, action, origin)


async def _watch(mirror: Mirror, prompt: Prompt, cause: Cause, action: Action, origin: Origin) -> None:
    """Refuse a turn whose prompt ends without a message, because it was withdrawn or a hook has blocked it."""
    announcements = mirror.session.delivery.announcements
    await prompt.run.done.wait()

    def check() -> None:
        if mirror.withdraw(cause):
            mirror.refuse(action, origin, "the prompt was not accepted")

    # In a cluster, the run may end before its beginning is announced.
    if announcements is None:
        check()
    else:
        announcements.announce(check)


def _prompt(mirror: Mirror, turn_id: str, message: JsonObject) -> Prompt:
    if _ID.fullmatch(turn_id) is None:
        raise InvalidRequestError("the id of a turn or message is 1 to 200 visible ASCII characters")
    if message.get("agent") is not None:
        raise InvalidRequestError("an agent for one message is not supported")
    text, found = attachments.to_prompt(message)
    return Prompt(
        text,
        attachments=[dict[str, object](item) for item in found],
        agent_mode=mirror.session.settings.mode,
        interaction_id=turn_id,
    )


def _use_model(mirror: Mirror, message: JsonObject) -> None:
    chosen: Any = message.get("model")
    if not isinstance(chosen, dict):
        return
    selection = cast("JsonObject", chosen)
    model, options, given = selection.get("id"), mirror.session.settings.options, selection.get("config")
    effort: Any = cast("JsonObject", given).get(config.EFFORT) if isinstance(given, dict) else None
    if not isinstance(effort, str) or effort == options.reasoning_effort:
        effort = None
    if isinstance(model, str) and model and (model != options.model or effort is not None):
        _set_model(mirror, model, effort)


def _set_model(mirror: Mirror, model: str, effort: str | None = None) -> None:
    if not mirror.context.models.adapters.may_have(model):
        raise InvalidRequestError(f"unknown model {model[:100]!r}")
    check_allowed(mirror.session.settings, model)
    mirror.session.use_model(model, "sdk", reasoning_effort=effort)


def _cancel_turn(mirror: Mirror, action: Action, origin: Origin) -> None:
    active: JsonObject | None = mirror.chat.get("activeTurn")
    if active is None or active["id"] != action["turnId"]:
        raise InvalidRequestError(NO_TURN)
    session, turn = mirror.session, mirror.translator.main.turn
    if turn is not None and turn.only_asks:
        raise InvalidRequestError("the turn ends with the answers to its questions")
    if (command := mirror.commands.get(action["turnId"])) is not None:
        mirror.cancelling[action["turnId"]] = origin
        command.cancel()
        return
    mirror.expect(Cause("chat/turnCancelled", action["turnId"]), origin)
    # The messages that wait stay, and follow the next turn.
    session.queue.paused = bool(session.queue.waiting()[0])
    if session.interrupt(flush=True) is None and not session.working:
        for end in list(mirror.translator.main.end_turn()):
            mirror.publish(end, origin)


def _truncate(mirror: Mirror, action: Action, origin: Origin) -> None:
    turns: list[JsonObject] = mirror.chat["turns"]
    last = action.get("turnId")
    place = next((place for place, turn in enumerate(turns) if turn["id"] == last), -1)
    if (place < 0 and last is not None) or mirror.session.working:
        raise InvalidRequestError("there is no such turn, or the session works")
    if place + 1 == len(turns):
        return
    mirror.expect(Cause("chat/truncated"), origin)
    mirror.context.registry.truncate(mirror.session, mirror.translator.main.first_events[turns[place + 1]["id"]])


# --- questions --------------------------------------------------------------------------------------------------


def _confirm(mirror: Mirror, action: Action, origin: Origin) -> None:
    request_id = mirror.translator.main.question_of(action["toolCallId"])
    pending = mirror.session.permissions.questions.pending
    question = next((one.question for one in pending.open() if one.id == request_id), None)
    active: JsonObject | None = mirror.chat.get("activeTurn")
    if request_id is None or question is None or active is None or active["id"] != action["turnId"]:
        raise InvalidRequestError(NOT_ASKED)
    mirror.expect(Cause("chat/toolCallConfirmed", action["toolCallId"]), origin)
    if not pending.answer(request_id, decision_of(action, question), DecidedBy(client=origin.client_id)):
        raise InvalidRequestError(NOT_ASKED)


def _change_answer(mirror: Mirror, action: Action, origin: Origin) -> None:
    request = forms.open_request(mirror.chat, action["requestId"])
    if request is None:
        raise InvalidRequestError(NOT_ASKED)
    if (problem := forms.answers_problem(request, [action["questionId"]])) is not None:
        raise InvalidRequestError(problem)
    mirror.publish(action, origin)


def _complete_input(mirror: Mirror, action: Action, origin: Origin) -> None:
    clients, request_id = mirror.session.clients, action["requestId"]
    if (request := forms.open_request(mirror.chat, request_id)) is not None:
        action = forms.with_drafts(request, action)
        if (problem := forms.completion_problem(request, action)) is not None:
            raise InvalidRequestError(problem)
    mirror.expect(Cause("chat/inputCompleted", request_id), origin)
    for pending in clients.user_inputs.open():
        if pending.id == request_id:
            clients.user_inputs.answer(request_id, forms.user_input_of(pending.question, action))
            return
    for plan in clients.plans.open():
        if plan.id == request_id:
            clients.plans.answer(request_id, forms.plan_answer_of(plan.question, action))
            return
    if clients.elicitations.answer(request_id, forms.elicitation_of(action)):
        return
    if not clients.auto_mode_switches.answer(request_id, forms.auto_mode_answer_of(action)):
        mirror.withdraw(Cause("chat/inputCompleted", request_id))
        raise InvalidRequestError(NOT_ASKED)


# --- waiting messages -------------------------------------------------------------------------------------------


def _queue(mirror: Mirror, action: Action, origin: Origin) -> None:
    session, message_id = mirror.session, action["id"]
    prompt = _prompt(mirror, message_id, action["message"])
    waiting, steering = session.queue.waiting()
    same, others = (steering, waiting) if action["kind"] == "steering" else (waiting, steering)
    if any(item.interaction_id == message_id for item in others if isinstance(item, Prompt)):
        raise InvalidRequestError("a message of the other kind has this id")
    if message_id in mirror.translator.main.first_events:
        raise InvalidRequestError(f"turn {message_id[:100]!r} exists")
    known = [item for item in same if isinstance(item, Prompt) and item.interaction_id == message_id]
    _use_model(mirror, action["message"])
    if not mirror.publish(action, origin):
        return
    if known:
        known[0].text, known[0].display_text, known[0].attachments = prompt.text, None, prompt.attachments
        session.queue.changed()
        return
    if not session.queue.running:
        session.queue.paused = False
    session.send(prompt, "immediate" if action["kind"] == "steering" else "enqueue")


def _remove_queued(mirror: Mirror, action: Action, origin: Origin) -> None:
    waiting, steering = mirror.session.queue.waiting()
    items = steering if action["kind"] == "steering" else waiting
    found = next((item for item in items if isinstance(item, Prompt) and item.interaction_id == action["id"]), None)
    if found is None:
        raise InvalidRequestError(f"no waiting message {action['id'][:100]!r}")
    mirror.publish(action, origin)
    mirror.session.queue.remove(found)


def _reorder(mirror: Mirror, action: Action, origin: Origin) -> None:
    queue = mirror.session.queue
    ids = {item.interaction_id: item for item in queue.waiting()[0] if isinstance(item, Prompt)}
    order = [name for name in dict.fromkeys(map(str, action["order"])) if name in ids]
    complete = [*order, *(name for name in ids if name not in order)]
    mirror.publish({**action, "order": complete}, origin)
    for place, name in enumerate(complete):
        queue.move(ids[name], place)


# --- the session ------------------------------------------------------------------------------------------------


def _set_title(mirror: Mirror, action: Action, origin: Origin) -> None:
    title = action["title"].strip()
    if title == mirror.state["title"]:
        return
    mirror.expect(Cause("session/titleChanged"), origin)
    set_session_name(mirror.context, mirror.session, title, by_user=True)


def _configure(mirror: Mirror, action: Action, origin: Origin) -> None:
    given: JsonObject = dict(action["config"])
    now = mirror.config_values()
    for name in (config.MODE, config.MODEL, config.ALLOW_ALL):
        if name in given and given[name] is None:
            raise InvalidRequestError(f"{name!r} has no value")
    mode, model, allow_all = (
        given.pop(config.MODE, None),
        given.pop(config.MODEL, None),
        given.pop(config.ALLOW_ALL, None),
    )
    wanted = config.mode_of(mode)
    if mode is not None and wanted is None:
        raise InvalidRequestError(f"unknown mode {str(mode)[:100]!r}")
    if allow_all not in (None, True, False):
        raise InvalidRequestError(f"{config.ALLOW_ALL!r} is not a boolean")
    check_config(reduce_session(mirror.state, _kept(mirror, given, replace=action.get("replace"))))
    changes: list[tuple[str, Callable[[], object]]] = []
    if model is not None and model != now.get(config.MODEL):
        changes.append((config.MODEL, lambda: _set_model(mirror, str(model))))
    if wanted is not None and wanted != now[config.MODE]:
        changes.append((config.MODE, lambda: mirror.session.change_mode(wanted)))
    if allow_all is not None and allow_all != now[config.ALLOW_ALL]:
        permissions = mirror.session.permissions
        changes.append((config.ALLOW_ALL, lambda: permissions.set_mode("allow-all" if allow_all else "manual")))
    for place, (key, change) in enumerate(changes):
        if place == 0:
            # Of several actions, the first one is the echo.
            mirror.expect(Cause("session/configChanged", key), origin)
        change()
    if given or action.get("replace"):
        # Clients have keys of their own, which are kept without effect.
        mirror.publish(_kept(mirror, given, replace=action.get("replace")), None if changes else origin)


def _kept(mirror: Mirror, given: JsonObject, *, replace: bool | None) -> Action:
    """Return the action that keeps the own settings of clients, in place of all others of them if wanted."""
    if not replace:
        return {"type": "session/configChanged", "config": given}
    values: JsonObject = mirror.state["config"]["values"]
    ours = {name: values[name] for name in (config.MODE, config.MODEL, config.ALLOW_ALL) if name in values}
    return {"type": "session/configChanged", "config": {**ours, **given}, "replace": True}


def _remove_client(mirror: Mirror, action: Action, origin: Origin) -> None:
    if action["clientId"] != origin.client_id:
        raise InvalidRequestError("a client removes itself only")
    client_tools.remove_client(mirror, origin.client_id, origin)


def _keep(mirror: Mirror, action: Action, origin: Origin) -> None:
    mirror.keeper.change(action, origin)


_DIRECT: Final = frozenset(("chat/isReadChanged", "chat/isArchivedChanged"))
_HANDLERS: Final[Mapping[str, Callable[[Mirror, Action, Origin], None]]] = {
    "chat/turnStarted": _start_turn,
    "chat/turnCancelled": _cancel_turn,
    "chat/truncated": _truncate,
    "chat/toolCallConfirmed": _confirm,
    "chat/inputAnswerChanged": _change_answer,
    "chat/inputCompleted": _complete_input,
    "chat/pendingMessageSet": _queue,
    "chat/pendingMessageRemoved": _remove_queued,
    "chat/queuedMessagesReordered": _reorder,
    "session/titleChanged": _set_title,
    "session/isReadChanged": _keep,
    "session/isArchivedChanged": _keep,
    "chat/draftChanged": _keep,
    "session/customizationToggled": customizations.toggle,
    "session/mcpServerStartRequested": customizations.start_server,
    "session/mcpServerStopRequested": customizations.stop_server,
    "session/mcpServerBackgroundRequested": customizations.move_to_background,
    "session/configChanged": _configure,
    "session/activeClientSet": client_tools.set_client,
    "session/activeClientRemoved": _remove_client,
}
_OF_RUNNERS: Final[Mapping[str, Callable[[Mirror, str, Action, Origin], None]]] = {
    "chat/toolCallContentChanged": client_tools.show_progress,
    "chat/toolCallComplete": client_tools.complete,
}
"""The actions of the client that runs a call, in the chat of any agent."""
SERVED: Final = frozenset(("root/configChanged", *_DIRECT, *_HANDLERS, *_OF_RUNNERS))
"""The actions that have an effect; all others are refused."""
