"""Options of sessions and prompts by their Python names, and their form on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from pydantic.alias_generators import to_camel

from jumpseat_protocol.events import AgentMode
from jumpseat_protocol.sessions import (
    LargeOutputConfig,
    ProviderConfig,
    ResponseFormatConfig,
    SystemMessageConfig,
    ToolChoiceConfig,
)
from jumpseat_protocol.wire import WireModel


class SessionSettings(TypedDict, total=False):
    """Options of ``create_session`` and ``resume_session``. Left out or ``None`` means the server's default.

    ``keep_interrupted_answers`` keeps what was shown of an aborted answer in the conversation. ``one_off`` marks a
    session for one prompt only. ``enable_file_change_tracking`` lets a rewind restore what commands have changed.
    ``extra`` is merged into the parameters unchanged: camelCase names of options that
    have no name here.
    """

    model: str | None
    provider: ProviderConfig | None
    reasoning_effort: str
    system_message: SystemMessageConfig
    available_tools: Sequence[str]
    excluded_tools: Sequence[str]
    tool_choice: ToolChoiceConfig
    hosted_tools: Sequence[str | Mapping[str, Any]]
    response_format: ResponseFormatConfig
    working_directory: str
    streaming: bool
    keep_interrupted_answers: bool
    one_off: bool
    enable_file_change_tracking: bool
    client_name: str
    large_output: LargeOutputConfig
    extra: Mapping[str, Any]


class PromptOptions(TypedDict, total=False):
    """Options of a prompt.

    ``mode``: ``enqueue`` (default) runs after the prompt in progress, ``immediate`` steers it. ``attachments``
    are objects as on the wire. ``display_prompt`` is shown to users in place of the prompt. ``extra`` works as in
    :class:`SessionSettings`.
    """

    attachments: Sequence[Mapping[str, Any]]
    mode: Literal["enqueue", "immediate"]
    agent_mode: AgentMode
    display_prompt: str
    request_headers: Mapping[str, str]
    tool_choice: ToolChoiceConfig
    hosted_tools: Sequence[str | Mapping[str, Any]]
    response_format: ResponseFormatConfig
    extra: Mapping[str, Any]


def to_params(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to wire parameters.

    Names become camelCase, models their wire form; ``None`` is left out and ``extra`` merged in.
    """
    params = {
        to_camel(name): value.wire() if isinstance(value, WireModel) else value
        for name, value in options.items()
        if name != "extra" and value is not None
    }
    return params | dict(options.get("extra", {}))
