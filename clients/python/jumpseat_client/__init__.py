"""A small typed client for agent servers that implement the Copilot SDK protocol, such as jumpseat."""

from jumpseat_client.client import Client, Notification, connect_stdio, connect_tcp, open_client
from jumpseat_client.connection import MessageTap
from jumpseat_client.errors import (
    HandshakeError,
    JumpseatClientError,
    RpcError,
    ServerGoneError,
    SessionAborted,
    SessionFailed,
)
from jumpseat_client.events import Event
from jumpseat_client.options import PromptOptions, SessionSettings
from jumpseat_client.permissions import (
    PermissionHandler,
    PermissionRequest,
    UnknownPermission,
    approve_all,
    approve_for_session,
    approve_once,
    cancel,
    no_result,
    reject,
)
from jumpseat_client.session import Session
from jumpseat_client.tools import AnyTool, Tool, ToolContext, tool
from jumpseat_protocol.permissions import PermissionDecision
from jumpseat_protocol.sessions import ProviderConfig, SystemMessageConfig
from jumpseat_protocol.tools import ToolResultObject

__all__ = [
    "AnyTool",
    "Client",
    "Event",
    "HandshakeError",
    "JumpseatClientError",
    "MessageTap",
    "Notification",
    "PermissionDecision",
    "PermissionHandler",
    "PermissionRequest",
    "PromptOptions",
    "ProviderConfig",
    "RpcError",
    "ServerGoneError",
    "Session",
    "SessionAborted",
    "SessionFailed",
    "SessionSettings",
    "SystemMessageConfig",
    "Tool",
    "ToolContext",
    "ToolResultObject",
    "UnknownPermission",
    "approve_all",
    "approve_for_session",
    "approve_once",
    "cancel",
    "connect_stdio",
    "connect_tcp",
    "no_result",
    "open_client",
    "reject",
    "tool",
]
