"""The shapes of what clients dispatch, as far as the types of the protocol require them, and limits. Pure.

Much of it reaches other clients as it is, and is in the states that they fold. Those with strict types drop what
does not fit, and a state that they cannot read is lost to them as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import orjson
from msgspec import Struct, ValidationError, convert, field

from jumpseat.ahp.states.values import JsonObject, State
from jumpseat.errors import InvalidRequestError
from jumpseat.parsing import message_size

LONGEST_PROBLEM: Final = 300
MOST_ENTRIES: Final = 1000
"""The entries of one array or object."""
MOST_VALUES: Final = 100_000
"""All values of a message."""
MOST_CONFIG_BYTES: Final = 64 * 1024
"""The size of the settings of a channel with their schema."""


class Shape(Struct, rename="camel", kw_only=True):
    """An object. Members that are unknown here are left alone."""

    meta: JsonObject | None = field(default=None, name="_meta")


# --- parts of actions -------------------------------------------------------------------------------------------


class _Origin(Shape):
    kind: Literal["user"]
    """Clients send no messages of others."""


class _Model(Shape):
    id: str
    config: JsonObject | None = None


class _Agent(Shape):
    uri: str


class _Message(Shape):
    text: str
    origin: _Origin
    attachments: list[JsonObject] | None = None
    model: _Model | None = None
    agent: _Agent | None = None


class _ToolHints(Shape):
    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class _Tool(Shape):
    name: str
    title: str | None = None
    description: str | None = None
    annotations: _ToolHints | None = None


class _Plugin(Shape):
    id: str
    uri: str
    name: str
    type: str


class _ActiveClient(Shape):
    client_id: str
    tools: list[_Tool]
    display_name: str | None = None
    customizations: list[_Plugin] | None = None


class _Text(Shape, tag_field="kind", tag="text"):
    value: str


class _Number(Shape, tag_field="kind", tag="number"):
    value: int | float


class _Boolean(Shape, tag_field="kind", tag="boolean"):
    value: bool


class _Selected(Shape, tag_field="kind", tag="selected"):
    value: str
    freeform_values: list[str] | None = None


class _SelectedMany(Shape, tag_field="kind", tag="selected-many"):
    value: list[str]
    freeform_values: list[str] | None = None


_Value = _Text | _Number | _Boolean | _Selected | _SelectedMany


class _Answered(Shape, tag_field="state", tag="submitted"):
    value: _Value


class _Drafted(Shape, tag_field="state", tag="draft"):
    value: _Value


class _Skipped(Shape, tag_field="state", tag="skipped"):
    freeform_values: list[str] | None = None


class _Markdown(Shape):
    markdown: str


class _Result(Shape):
    success: bool
    past_tense_message: str | _Markdown
    content: list[JsonObject] | None = None
    structured_content: JsonObject | None = None


# --- actions ----------------------------------------------------------------------------------------------------


class _Empty(Shape):
    pass


class _Config(Shape):
    config: JsonObject
    replace: bool | None = None


class _Title(Shape):
    title: str


class _Read(Shape):
    is_read: bool


class _Archived(Shape):
    is_archived: bool


class _ClientSet(Shape):
    active_client: _ActiveClient


class _ClientRemoved(Shape):
    client_id: str


class _Toggled(Shape):
    id: str
    enablement: list[JsonObject]


class _Item(Shape):
    id: str


class _Directory(Shape):
    directory: str


class _DirectoryReplaced(Shape):
    directory: str
    replacement: str


class _TurnStarted(Shape):
    turn_id: str
    started_at: str
    message: _Message
    queued_message_id: str | None = None


class _OfTurn(Shape):
    turn_id: str


class _Confirmed(Shape):
    turn_id: str
    tool_call_id: str
    approved: bool


class _CallContent(Shape):
    turn_id: str
    tool_call_id: str
    content: list[JsonObject]


class _CallComplete(Shape):
    turn_id: str
    tool_call_id: str
    result: _Result


class _AnswerChanged(Shape):
    request_id: str
    question_id: str
    answer: _Answered | _Drafted | _Skipped | None = None


class _InputCompleted(Shape):
    request_id: str
    response: Literal["accept", "decline", "cancel"]
    answers: dict[str, _Answered | _Drafted | _Skipped] | None = None


_Pending = Literal["steering", "queued"]


class _PendingSet(Shape):
    kind: _Pending
    id: str
    message: _Message


class _PendingRemoved(Shape):
    kind: _Pending
    id: str


class _Reordered(Shape):
    order: list[str]


class _Draft(Shape):
    draft: _Message | None = None


class _Truncated(Shape):
    turn_id: str | None = None


ACTIONS: Final[Mapping[str, type[Shape]]] = {
    "root/configChanged": _Config,
    "session/defaultChatChanged": _Empty,
    "session/titleChanged": _Title,
    "session/isReadChanged": _Read,
    "session/isArchivedChanged": _Archived,
    "session/configChanged": _Config,
    "session/activeClientSet": _ClientSet,
    "session/activeClientRemoved": _ClientRemoved,
    "session/customizationToggled": _Toggled,
    "session/mcpServerStartRequested": _Item,
    "session/mcpServerStopRequested": _Item,
    "session/mcpServerBackgroundRequested": _Item,
    "session/workingDirectorySet": _Directory,
    "session/workingDirectoryRemoved": _Directory,
    "session/workingDirectoryReplaced": _DirectoryReplaced,
    "chat/turnStarted": _TurnStarted,
    "chat/turnCancelled": _OfTurn,
    "chat/turnResume": _OfTurn,
    "chat/toolCallConfirmed": _Confirmed,
    "chat/toolCallContentChanged": _CallContent,
    "chat/toolCallComplete": _CallComplete,
    "chat/toolCallResultConfirmed": _Confirmed,
    "chat/inputAnswerChanged": _AnswerChanged,
    "chat/inputCompleted": _InputCompleted,
    "chat/pendingMessageSet": _PendingSet,
    "chat/pendingMessageRemoved": _PendingRemoved,
    "chat/queuedMessagesReordered": _Reordered,
    "chat/draftChanged": _Draft,
    "chat/isReadChanged": _Read,
    "chat/isArchivedChanged": _Archived,
    "chat/truncated": _Truncated,
    "chat/workingDirectorySet": _Directory,
    "chat/workingDirectoryRemoved": _Directory,
}
"""The actions that clients may dispatch."""


def mismatch_of(value: Any, shape: type[Shape]) -> str | None:
    """Return where a value has not the shape, or ``None``."""
    try:
        convert(value, shape)
    except ValidationError as error:
        return str(error)[:LONGEST_PROBLEM]
    return None


def is_draft(value: Any) -> bool:
    """Return whether a value is a message that a client may have begun to write."""
    return mismatch_of(value, _Message) is None


def excess_of(value: Any) -> str | None:
    """Return what a message has too much of, or ``None``."""
    return message_size.excess_of(value, MOST_ENTRIES, MOST_VALUES)


def check_config(state: State) -> None:
    """Check the size of the settings in a state.

    Raises:
        InvalidRequestError: they are too large.
    """
    if len(orjson.dumps(state.get("config"))) > MOST_CONFIG_BYTES:
        raise InvalidRequestError(f"the settings are larger than {MOST_CONFIG_BYTES} bytes")


def problem_of(action: Any) -> str | None:
    """Return why an action cannot be one of a client, or ``None``."""
    if not isinstance(action, dict) or not isinstance(kind := cast("JsonObject", action).get("type"), str):
        return "an action is an object with a string 'type'"
    if (shape := ACTIONS.get(kind)) is None:
        return f"{kind[:100]!r} is not an action of clients"
    return excess_of(action) or mismatch_of(cast("JsonObject", action), shape)
