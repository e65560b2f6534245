"""Permission requests, with a type per kind, and the decisions that answer them.

The requests are structs because tools build them; the decisions are checked models because clients send them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import field
from pydantic import Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel

from jumpseat_protocol.limits import KeyText, PathText, PathTexts
from jumpseat_protocol.wire import NestedNulls, WireModel, WireStruct, always, to_wire


class ShellCommand(WireStruct, kw_only=True):
    """A command of a shell line. Approvals store its ``identifier``, such as ``git status``."""

    identifier: str
    """The part of the command that an approval covers, such as ``git status``."""
    read_only: bool
    """Whether it is known to change nothing."""


class CommandSegment(WireStruct, kw_only=True):
    """A command of a compound line with its text, for rules that match arguments."""

    identifier: str
    """The part of the command that an approval covers."""
    full_command_text: str
    """The whole command."""


class PossibleUrl(WireStruct, kw_only=True):
    """An address that a command may load."""

    url: str


class _Permission(WireStruct, kw_only=True, tag_field="kind"):
    """The base of permission requests.

    With ``managed_approval_required``, a host's policy wants a person to decide about each such call.
    """

    managed_approval_required: bool | None = None
    """Whether a host's policy wants a person to decide."""


class ShellPermission(_Permission, kw_only=True, tag="shell"):
    """Run a shell command.

    ``sandboxed`` is whether the command is confined; it is missing if the sandbox is off. With
    ``request_sandbox_bypass``, the command is to run outside of the sandbox that would confine it. The confined
    command reaches ``sandbox_hosts`` without a further question. ``also_covered`` names the commands that a lasting
    approval covers in the sandbox beyond ``commands``.
    """

    kind: ClassVar[Literal["shell"]] = "shell"
    full_command_text: str
    """The whole command line."""
    intention: str
    """What the command is for, in the model's words."""
    commands: list[ShellCommand]
    """The commands of the line."""
    possible_paths: list[str]
    """The paths that it may touch, as far as they can be read from it."""
    possible_urls: list[PossibleUrl] = field(default_factory=list[PossibleUrl])
    """The addresses that it may reach, as far as they can be read from it."""
    has_write_file_redirection: bool
    """Whether it redirects output to a file."""
    can_offer_session_approval: bool
    """Whether it may be approved for the whole session."""
    command_segments: list[CommandSegment] | None = None
    """The commands of a compound line with their texts."""
    sandboxed: bool | None = None
    """Whether the command is confined."""
    sandbox_hosts: list[str] | None = None
    """The hosts that it may reach in the sandbox."""
    request_sandbox_bypass: bool | None = None
    """Whether it is to run outside of the sandbox."""
    request_sandbox_bypass_reason: str | None = None
    """Why it has to."""
    also_covered: str | None = None
    """What else an approval for the session would cover, for people."""
    warning: str | None = None
    """What people should look at, such as a disguised name."""
    tool_call_id: str | None = None


class FileContent(WireStruct, kw_only=True):
    """A file before or after a change. ``content`` is missing if the file is large.

    ``resolved_path`` is set if ``path`` leads elsewhere.
    """

    path: str
    """The path of the file."""
    content: str | None = None
    """The text of the file."""
    resolved_path: str | None = None
    """Where the path leads to, if that is elsewhere."""


class ProposedFileEdit(WireStruct, kw_only=True):
    """The change of one file: a new file has no ``before``, a deleted one no ``after``, a moved one two paths."""

    before: FileContent | None = None
    """The file as it is; missing for a new file."""
    after: FileContent | None = None
    """The file after the change; missing for a deleted file."""


class WritePermission(_Permission, kw_only=True, tag="write"):
    """Create or change a file. ``diff`` is a unified diff of the change.

    A change of several files lists them in ``file_edits``; then ``file_name`` is the folder that they are in.
    ``resolved_path`` is set if ``file_name`` leads elsewhere: by a link, or by ``..``. ``warning`` names what the
    change may hide, and what it makes other programs do.
    """

    kind: ClassVar[Literal["write"]] = "write"
    intention: str
    """What the change is for."""
    file_name: str
    """The path of the file, or of the folder if several change."""
    diff: str
    """The change as a unified diff."""
    can_offer_session_approval: bool = always(True)
    """Whether such changes may be approved for the whole session."""
    new_file_contents: str | None = None
    """The whole text after the change."""
    file_edits: list[ProposedFileEdit] | None = None
    """The files, if several change."""
    resolved_path: str | None = None
    """Where the path leads to, if that is elsewhere."""
    warning: str | None = None
    """What people should look at, such as a file that other programs obey."""
    tool_call_id: str | None = None

    @property
    def files(self) -> list[FileContent]:
        """Return the files that change, each path once."""
        sides = [side for edit in self.file_edits or () for side in (edit.before, edit.after) if side is not None]
        return list({side.path: side for side in sides}.values())


class ReadPermission(_Permission, kw_only=True, tag="read"):
    """Read a file or a directory. ``resolved_path`` is set if ``path`` leads elsewhere: by a link, or by ``..``."""

    kind: ClassVar[Literal["read"]] = "read"
    intention: str
    """What the file is read for."""
    path: str
    """The path."""
    resolved_path: str | None = None
    """Where the path leads to, if that is elsewhere."""
    warning: str | None = None
    """What people should look at, such as a disguised name."""
    tool_call_id: str | None = None


class McpPermission(_Permission, kw_only=True, tag="mcp"):
    """Call a tool of an MCP server. ``read_only`` is as the server declares it."""

    kind: ClassVar[Literal["mcp"]] = "mcp"
    server_name: str
    tool_name: str
    tool_title: str
    """The tool's title, for people."""
    read_only: bool
    """Whether the server declares that the tool changes nothing."""
    args: Any = None
    """The arguments."""
    warning: str | None = None
    """What people should look at, such as a disguised name."""
    tool_call_id: str | None = None


class UrlPermission(_Permission, kw_only=True, tag="url"):
    """Load a URL. ``redirected_from`` is the URL that redirected to it."""

    kind: ClassVar[Literal["url"]] = "url"
    intention: str
    """What the page is loaded for."""
    url: str
    redirected_from: str | None = None
    """The URL that redirected here."""
    warning: str | None = None
    """What people should look at, such as a disguised host."""
    tool_call_id: str | None = None


class MemoryPermission(_Permission, kw_only=True, tag="memory"):
    """Store a memory, or vote on one. ``scope`` is whose memory it is: that of ``repo_nwo``, or the user's."""

    kind: ClassVar[Literal["memory"]] = "memory"
    fact: str
    """The text of the memory."""
    action: Literal["store", "vote"] = always("store")
    """What is done with the memory."""
    subject: str | None = None
    """What the memory is about."""
    citations: str | None = None
    """Where the fact comes from."""
    reason: str | None = None
    """Why it is worth keeping."""
    direction: Literal["upvote", "downvote"] | None = None
    """The direction of the vote."""
    scope: Literal["repository", "user"] | None = None
    """Whose memory it is."""
    repo_nwo: str | None = None
    """The repository as ``owner/name``."""
    warning: str | None = None
    """What people should look at, such as hidden characters."""
    tool_call_id: str | None = None


class CustomToolPermission(_Permission, kw_only=True, tag="custom-tool"):
    """Run a client tool."""

    kind: ClassVar[Literal["custom-tool"]] = "custom-tool"
    tool_name: str
    tool_description: str
    """What the tool does."""
    args: Any = None
    """The arguments."""
    warning: str | None = None
    """What people should look at, such as a disguised name."""
    tool_call_id: str | None = None


class HookPermission(_Permission, kw_only=True, tag="hook"):
    """Run a tool call that a hook has referred to a person."""

    kind: ClassVar[Literal["hook"]] = "hook"
    tool_name: str
    tool_args: Any = None
    """The arguments."""
    hook_message: str | None = None
    """What the hook says to people."""
    warning: str | None = None
    """What people should look at, such as hidden characters."""
    tool_call_id: str | None = None


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


class AssistedApproval(WireStruct, kw_only=True):
    """The recommendation of a judging model. ``failure_reason`` is set for ``error``."""

    recommendation: Literal["approve", "requireApproval", "excluded", "error"]
    """What the judging model recommends."""
    reason: str | None = None
    """Why, in its words."""
    model: str | None = None
    """The id of the judging model."""
    failure_reason: Literal["timeout", "abort", "empty_response", "model_error", "parse_error"] | None = None
    """Why there is no recommendation."""


def prompt_of(request: PermissionRequest, assisted: AssistedApproval | None = None) -> dict[str, Any]:
    """Return ``request`` in the form that clients show to a person."""
    prompt: dict[str, Any] = to_wire(request)
    if isinstance(request, ShellPermission):
        shown = (
            *("fullCommandText", "intention", "warning", "canOfferSessionApproval", "toolCallId"),
            "managedApprovalRequired",
        )
        prompt = {name: prompt[name] for name in shown if name in prompt}
        prompt |= {"kind": "commands", "commandIdentifiers": [command.identifier for command in request.commands]}
    return prompt | ({"assistedApproval": to_wire(assisted)} if assisted is not None else {})


class SessionApproval(WireModel):
    """An approval for the session or a location. The fields depend on ``kind``."""

    kind: str
    command_identifiers: list[str] | None = None
    """The commands that are covered, such as ``git status``."""
    server_name: str | None = None
    tool_name: str | None = None

    @model_validator(mode="after")
    def _says_what(self) -> SessionApproval:
        # SDKs cannot decode the event for an approval that lacks the field.
        needed = {"commands": "command_identifiers", "mcp": "server_name", "custom-tool": "tool_name"}.get(
            self.kind
        )
        if needed is not None and getattr(self, needed) is None:
            raise ValueError(f"an approval of the kind {self.kind!r} needs {to_camel(needed)}")
        return self

    def wire(self) -> dict[str, Any]:
        """Return the JSON form. An approval of all tools of an MCP server has the tool name ``null``."""
        record = super().wire()
        return {**record, "toolName": self.tool_name} if self.kind == "mcp" else record


class WireRule(NestedNulls):
    """A rule, such as ``shell`` with the argument ``git status``; without an argument, it matches its kind."""

    sent_as_null = ("argument",)

    kind: str = Field(min_length=1)
    argument: str | None = None
    """What the rule matches, such as ``git status``; everything of its kind if missing."""


class PermissionDecision(WireModel):
    """A client's answer. Hosts that forward completed results send those kinds; they are accepted too.

    ``modified_args`` take the place of the call's arguments where it is approved; ``directories`` go with
    ``approve-read-only-for-session``. A ``reject`` without feedback ends the turn, unless ``interrupt`` is false.
    The other fields say why a call was denied elsewhere.
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
    """What the model should do instead."""
    approval: SessionApproval | None = None
    """What is approved from now on."""
    location_key: str | None = None
    """The folder or repository that an approval is kept for."""
    domain: str | None = None
    """The host that is approved."""
    modified_args: dict[str, Any] | None = None
    """Arguments to run the call with instead."""
    directories: PathTexts | None = None
    """Further folders that the session may work in."""
    rules: list[WireRule] | None = None
    """The rules that decided."""
    path: PathText | None = None
    """The path that decided."""
    message: str | None = None
    """What the decision says to people."""
    reason: str | None = None
    """Why it was denied."""
    interrupt: StrictBool | None = None
    """Whether the turn ends with the refusal."""
    force_reject: StrictBool | None = None
    """Whether the call is refused although approvals would cover it."""


class HandlePendingPermissionRequestParams(WireModel):
    """The answer to a permission request."""

    session_id: str
    request_id: str
    result: PermissionDecision
    """The decision."""


Decider: TypeAlias = Literal[
    "tool", "hook", "rule", "approval", "mode", "sandbox", "judge", "operator", "client", "nobody", "turn"
]
"""Source of the decision about a tool call.

``tool``: the tool needs no permission. ``mode``: the permission mode allows everything, or plan mode refuses the
call. ``sandbox``: the call stays confined. ``operator``: the server allows calls that nobody can be asked about.
``nobody``: nobody could be asked. ``turn``: the turn, or another call of the answer, was cancelled.
"""


class DecidedBy(WireStruct, kw_only=True):
    """Origin of a decision: the ``client_name`` of the client, and the name of its connection token.

    Either is unset if the client or its token has no name.
    """

    client: str | None = None
    """The name of the client."""
    token: KeyText | None = None
    """The name of the token that it connected with."""


class PermissionResult(WireStruct, kw_only=True):
    """The result in ``permission.completed``."""

    kind: str
    feedback: str | None = None
    """What the model should do instead."""
    approval: dict[str, Any] | None = None
    """What is approved from now on."""
    location_key: str | None = None
    """The folder or repository that the approval is kept for."""
    directories: list[str] | None = None
    """Further folders that the session may work in."""
    rules: list[dict[str, Any]] | None = None
    """The rules that decided."""
    path: str | None = None
    """The path that decided."""
    message: str | None = None
    """What the decision says to people."""
    reason: str | None = None
    """Why it was denied."""
    interrupt: bool | None = None
    """Whether the turn ends with the refusal."""
    force_reject: bool | None = None
    """Whether the call was refused although approvals would cover it."""
