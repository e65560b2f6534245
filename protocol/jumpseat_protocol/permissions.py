"""Permission requests, one shape per kind, and the decisions that answer them.

The requests are dataclasses because tools build them; the decisions are checked models because clients send them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from jumpseat_protocol.wire import WireDataclass, WireModel


@dataclass(slots=True, kw_only=True)
class ShellCommand(WireDataclass):
    """One command of a shell line: ``identifier`` is what an approval remembers (``git status``, say)."""

    identifier: str
    read_only: bool


@dataclass(slots=True, kw_only=True)
class CommandSegment(WireDataclass):
    """One command of a compound line with its text, for rules that look at arguments."""

    identifier: str
    full_command_text: str


@dataclass(slots=True, kw_only=True)
class PossibleUrl(WireDataclass):
    url: str


@dataclass(slots=True, kw_only=True)
class ShellPermission(WireDataclass):
    """Run a shell command."""

    full_command_text: str
    intention: str
    commands: list[ShellCommand]
    possible_paths: list[str]
    possible_urls: list[PossibleUrl] = field(default_factory=list[PossibleUrl])
    has_write_file_redirection: bool
    can_offer_session_approval: bool
    command_segments: list[CommandSegment] | None = None
    warning: str | None = None
    tool_call_id: str | None = None
    kind: Literal["shell"] = "shell"


@dataclass(slots=True, kw_only=True)
class WritePermission(WireDataclass):
    """Create or change a file. ``diff`` is a unified diff of what would change."""

    intention: str
    file_name: str
    diff: str
    can_offer_session_approval: bool = True
    new_file_contents: str | None = None
    tool_call_id: str | None = None
    kind: Literal["write"] = "write"


@dataclass(slots=True, kw_only=True)
class ReadPermission(WireDataclass):
    """Read a file or a directory."""

    intention: str
    path: str
    tool_call_id: str | None = None
    kind: Literal["read"] = "read"


@dataclass(slots=True, kw_only=True)
class UrlPermission(WireDataclass):
    """Fetch an address, or send something to it."""

    intention: str
    url: str
    redirected_from: str | None = None
    tool_call_id: str | None = None
    kind: Literal["url"] = "url"


@dataclass(slots=True, kw_only=True)
class MemoryPermission(WireDataclass):
    """Store a memory, or vote on one. ``scope`` tells whom it is for: who works in ``repo_nwo``, or the user."""

    fact: str
    action: Literal["store", "vote"] = "store"
    subject: str | None = None
    citations: str | None = None
    reason: str | None = None
    direction: Literal["upvote", "downvote"] | None = None
    scope: Literal["repository", "user"] | None = None
    repo_nwo: str | None = None
    tool_call_id: str | None = None
    kind: Literal["memory"] = "memory"


@dataclass(slots=True, kw_only=True)
class CustomToolPermission(WireDataclass):
    """Run a tool of the client."""

    tool_name: str
    tool_description: str
    args: Any = None
    tool_call_id: str | None = None
    kind: Literal["custom-tool"] = "custom-tool"


@dataclass(slots=True, kw_only=True)
class McpPermission(WireDataclass):
    """Run a tool of an MCP server. ``read_only`` is what the server says of it."""

    server_name: str
    tool_name: str
    tool_title: str
    read_only: bool
    args: Any = None
    tool_call_id: str | None = None
    kind: Literal["mcp"] = "mcp"


@dataclass(slots=True, kw_only=True)
class HookPermission(WireDataclass):
    """A hook wants a person to decide on this call."""

    tool_name: str
    tool_args: Any = None
    hook_message: str | None = None
    tool_call_id: str | None = None
    kind: Literal["hook"] = "hook"


PermissionRequest: TypeAlias = (
    ShellPermission
    | WritePermission
    | ReadPermission
    | UrlPermission
    | MemoryPermission
    | CustomToolPermission
    | McpPermission
    | HookPermission
)


class SessionApproval(WireModel):
    """What an approval for the session or a location covers; the fields go with ``kind``."""

    kind: str
    command_identifiers: list[str] | None = None
    server_name: str | None = None
    tool_name: str | None = None


class PermissionDecision(WireModel):
    """A client's answer. Hosts that forward completed results send those kinds; they are accepted too.

    ``modified_args`` take the place of the call's arguments where it is approved.
    """

    kind: Literal[
        "approve-once",
        "approve-for-session",
        "approve-for-location",
        "approve-permanently",
        "reject",
        "user-not-available",
        "no-result",
        "approved",
        "approved-for-session",
        "approved-for-location",
        "cancelled",
        "denied-by-rules",
        "denied-no-approval-rule-and-could-not-request-from-user",
        "denied-interactively-by-user",
        "denied-by-content-exclusion-policy",
        "denied-by-permission-request-hook",
    ]
    feedback: str | None = None
    approval: SessionApproval | None = None
    location_key: str | None = None
    domain: str | None = None
    modified_args: dict[str, Any] | None = None


class HandlePendingPermissionRequestParams(WireModel):
    """``session.permissions.handlePendingPermissionRequest``."""

    session_id: str
    request_id: str
    result: PermissionDecision


@dataclass(slots=True, kw_only=True)
class PermissionResult(WireDataclass):
    """``permission.completed``'s result."""

    kind: str
    feedback: str | None = None
    approval: dict[str, Any] | None = None
    location_key: str | None = None
    reason: str | None = None
