"""The entries of the tables of methods, and the table of version 1 with the functions that serve it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.methods import (
    authenticate,
    initialize,
    mcp_message,
    providers,
    session_config,
    session_end,
    session_list,
    session_open,
    session_prompt,
)
from jumpseat.acp.translation import params as p
from jumpseat_protocol.wire import WireModel

Answer: TypeAlias = dict[str, Any]


class Route(NamedTuple):
    """A method: its params, and its function. Plain functions run in the order of arrival, coroutines as tasks."""

    params: type[WireModel]
    serve: Callable[[AcpContext, Any], Answer | Awaitable[Answer]]


class Notified(NamedTuple):
    """A notification: its params, and its function."""

    params: type[WireModel]
    take: Callable[[AcpContext, Any], None]


REQUESTS: Final[Mapping[str, Route]] = {
    "initialize": Route(p.InitializeParams, initialize.initialize),
    "authenticate": Route(p.AuthenticateParams, authenticate.authenticate),
    "auth/status": Route(p.Nothing, authenticate.status),
    "logout": Route(p.Nothing, authenticate.logout),
    "session/new": Route(p.NewSessionParams, session_open.new),
    "session/load": Route(p.OpenSessionParams, session_open.load),
    "session/resume": Route(p.OpenSessionParams, session_open.resume),
    "session/fork": Route(p.OpenSessionParams, session_open.fork),
    "session/list": Route(p.ListParams, session_list.list_sessions),
    "session/status": Route(p.SessionParams, session_list.status),
    "session/delete": Route(p.SessionParams, session_end.delete),
    "session/close": Route(p.SessionParams, session_end.close),
    "session/prompt": Route(p.PromptParams, session_prompt.prompt),
    "session/set_mode": Route(p.SetModeParams, session_config.set_mode),
    "session/set_model": Route(p.SetModelParams, session_config.set_model),
    "session/set_config_option": Route(p.SetConfigOptionParams, session_config.set_config_option),
    "session/set_title": Route(p.SetTitleParams, session_config.set_title),
    "providers/list": Route(p.Nothing, providers.list_providers),
    "providers/set": Route(p.SetProviderParams, providers.set_provider),
    "providers/disable": Route(p.ProviderParams, providers.disable),
}

NOTIFICATIONS: Final[Mapping[str, Notified]] = {
    "mcp/message": Notified(p.McpNotificationParams, mcp_message.notify),
    "session/cancel": Notified(p.SessionParams, session_prompt.cancel),
}
"""In addition to ``$/cancel_request``, which cancels any request."""
