"""Permission requests, one shape per kind, and the decisions that answer them.

The requests are dataclasses because tools build them; the decisions are checked models because clients send them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel

from jumpseat_protocol.wire import WireDataclass, WireModel, to_wire


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
    """Create or change a file. ``diff`` is a unified diff of what would change.

    ``resolved_path`` is there where ``file_name`` leads elsewhere by a link.
    """

    intention: str
    file_name: str
    diff: str
    can_offer_session_approval: bool = True
    new_file_contents: str | None = None
    resolved_path: str | None = None
    tool_call_id: str | None = None
    kind: Literal["write"] = "write"


@dataclass(slots=True, kw_only=True)
class ReadPermission(WireDataclass):
    """Read a file or a directory. ``resolved_path`` is there where ``path`` leads elsewhere by a link."""

    intention: str
    path: str
    resolved_path: str | None = None
    tool_call_id: str | None = None
    kind: Literal["read"] = "read"


@dataclass(slots=True, kw_only=True)
class McpPermission(WireDataclass):
    """Call a tool of an MCP server. ``read_only`` is what the server says of it."""

    server_name: str
    tool_name: str
    tool_title: str
    read_only: bool
    args: Any = None
    tool_call_id: str | None = None
    kind: Literal["mcp"] = "mcp"


@dataclass(slots=True, kw_only=True)
class UrlPermission(WireDataclass):
    """Load what is at a URL; ``redirected_from`` is where that was learnt."""

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
    | McpPermission
    | UrlPermission
    | MemoryPermission
    | CustomToolPermission
    | HookPermission
)


@dataclass(slots=True, kw_only=True)
class AssistedApproval(WireDataclass):
    """What a judging model makes of a request. ``failure_reason`` goes with ``error``."""

    recommendation: Literal["approve", "requireApproval", "excluded", "error"]
    reason: str | None = None
    model: str | None = None
    failure_reason: Literal["timeout", "abort", "empty_response", "model_error", "parse_error"] | None = None


def prompt_of(request: PermissionRequest, assisted: AssistedApproval | None = None) -> dict[str, Any]:
    """``request`` as clients show it to a person."""
    prompt: dict[str, Any] = to_wire(request)
    if isinstance(request, ShellPermission):
        shown = ("fullCommandText", "intention", "warning", "canOfferSessionApproval", "toolCallId")
        prompt = {name: prompt[name] for name in shown if name in prompt}
        prompt |= {"kind": "commands", "commandIdentifiers": [one.identifier for one in request.commands]}
    return prompt | ({"assistedApproval": to_wire(assisted)} if assisted is not None else {})


class SessionApproval(WireModel):
    """What an approval for the session or a location covers; the fields go with ``kind``."""

    kind: str
    command_identifiers: list[str] | None = None
    server_name: str | None = None
    tool_name: str | None = None

    @model_validator(mode="after")
    def _says_what(self) -> SessionApproval:
        # No SDK could read the event that tells of one without it.
        needed = {"commands": "command_identifiers", "mcp": "server_name", "custom-tool": "tool_name"}.get(
            self.kind
        )
        if needed is not None and getattr(self, needed) is None:
            raise ValueError(f"an approval of the kind {self.kind!r} needs {to_camel(needed)}")
        return self


class WireRule(WireModel):
    """One rule: ``shell`` with the argument ``git status``, say. Without an argument, all of its kind is meant."""

    kind: str = Field(min_length=1)
    argument: str | None = None


class PermissionDecision(WireModel):
    """A client's answer. Hosts that forward completed results send those kinds; they are accepted too.

    ``modified_args`` take the place of the call's arguments where it is approved; ``directories`` go with
    ``approve-read-only-for-session``. The fields behind those say why a call was denied elsewhere.
    """

    kind: Literal[
        "approve-once",
        "approve-for-session",
        "approve-for-location",
        "approve-permanently",
        "approve-read-only-for-session",
        "reject",
        "user-not-available",
        "no-result",
        "approved",
        "approved-for-session",
        "approved-for-location",
        "approved-read-only-for-session",
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
    directories: list[str] | None = None
    rules: list[WireRule] | None = None
    path: str | None = None
    message: str | None = None
    reason: str | None = None
    interrupt: StrictBool | None = None
    force_reject: StrictBool | None = None


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
    directories: list[str] | None = None
    rules: list[dict[str, Any]] | None = None
    path: str | None = None
    message: str | None = None
    reason: str | None = None
    interrupt: bool | None = None
    force_reject: bool | None = None
