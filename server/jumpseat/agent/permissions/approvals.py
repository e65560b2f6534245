"""Approvals that outlast one call: what they cover, and the interface of their store.

An approval names commands, a tool or a kind of request. The hosts and the paths outside of the session's folders
that the approved call touched are recorded with it one by one: approving a call approves no other path and no other
host.

Approvals for a location ("approve for this location") and for everywhere go into an :class:`ApprovalStore`;
``jumpseat.store.user.location_approvals.LocationApprovals`` implements it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.permissions.paths import anchors_of
from jumpseat.agent.permissions.rules import CHANGING, ApprovedCommands, Facts, Rule, likenesses_here, shows_only
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    SessionApproval,
    ShellPermission,
    WritePermission,
)

OUTSIDE: Final = "outside of the sandbox: "


class ApprovalRecord(Struct, frozen=True):
    """An approval, with what the approved call touched.

    ``approval`` is ``None`` if only hosts were approved. ``paths`` are real paths outside of the session's folders,
    ``texts`` whole command lines, or scopes of calls (:class:`Facts`), ``anchors`` the folder of the approved line,
    the programs that it names by their paths, and the marks of what git would run and of the project's files
    (:attr:`Facts.git_mark`, :attr:`Facts.files_mark`), ``alike`` what confined commands have to be like to be
    covered inside of a sandbox.
    """

    approval: SessionApproval | None = None
    paths: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    anchors: frozenset[str] = frozenset()
    alike: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that is stored: ``{approval, places, hosts, texts, anchors}``."""
        return {
            "approval": self.approval.wire() if self.approval else None,
            "places": sorted(self.paths),
            "hosts": sorted(self.hosts),
            "texts": sorted(self.texts),
            "anchors": sorted(self.anchors),
            **({"alike": sorted(self.alike)} if self.alike else {}),
        }

    @property
    def of_whole_server(self) -> bool:
        """Return whether the approval covers all tools of an MCP server."""
        return self.approval is not None and self.approval.kind == "mcp" and self.approval.tool_name is None

    def rules(self) -> list[Rule]:
        """Return the approval as rules, for people and clients to read."""
        shown = [Rule("url", host) for host in sorted(self.hosts)]
        approval = self.approval
        if approval is None:
            return shown
        match approval.kind:
            case "commands":
                return [Rule("shell", identifier) for identifier in approval.command_identifiers or ()]
            case "mcp":
                tool = f":{approval.tool_name}" if approval.tool_name else ""
                return [Rule("mcp", f"{approval.server_name}{tool}")]
            case "custom-tool":
                return [Rule("custom-tool", approval.tool_name)]
            case kind:
                return [Rule(kind)]


def parse_approval(record: Any) -> ApprovalRecord | None:
    """Parse the output of :meth:`ApprovalRecord.to_json`; return ``None`` for any other value."""
    if not isinstance(record, dict):
        return None
    values = cast("dict[str, Any]", record)
    try:
        approval = values.get("approval")
        return ApprovalRecord(
            SessionApproval.model_validate(approval) if approval is not None else None,
            *(
                frozenset(_strings(values.get(name, [])))
                for name in ("places", "hosts", "texts", "anchors", "alike")
            ),
        )
    except ValueError:
        return None


def _strings(values: Any) -> Iterable[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[Any]", values)):
        raise ValueError("expected a list of strings")
    return cast("list[str]", values)


class StoredApprovals(Struct):
    """The approvals and allow rules that are stored for one location, or for everywhere."""

    approvals: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    rules: list[Rule] = field(default_factory=list[Rule])


class ApprovalStore(Protocol):
    """Approvals that outlive a session, by location. The location ``None`` stands for everywhere.

    Methods that write may block on other processes, and raise :class:`~jumpseat.errors.StoreError` if the file
    cannot be written.
    """

    def read(self, location: str | None) -> StoredApprovals:
        """Read the approvals for a location, without those for everywhere."""
        ...

    def add(self, location: str | None, record: ApprovalRecord) -> None:
        """Store an approval."""

    def change_rules(self, location: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None:
        """Change the allow rules of a location; removals also remove the approvals they match."""

    def remove(self, location: str | None, record: ApprovalRecord | Rule) -> None:
        """Remove one approval or rule. Does nothing if there is none such."""


def narrowest_approval(request: PermissionRequest) -> SessionApproval | None:
    """Return the narrowest approval that covers ``request``; ``None`` if none is safe to offer."""
    match request:
        case ShellPermission():
            if not request.can_offer_session_approval:
                return None
            # Approving several commands that do something approves them together, not one by one.
            acting = [command for command in request.commands if not command.read_only]
            identifiers = [command.identifier for command in request.commands]
            return SessionApproval(
                kind="commands",
                command_identifiers=identifiers if len(acting) <= 1 else [request.full_command_text],
            )
        case WritePermission():
            return SessionApproval(kind="write")
        case ReadPermission():
            return SessionApproval(kind="read")
        case McpPermission():
            return SessionApproval(kind="mcp", server_name=request.server_name, tool_name=request.tool_name)
        case MemoryPermission():
            return SessionApproval(kind="memory")
        case CustomToolPermission():
            return SessionApproval(kind="custom-tool", tool_name=request.tool_name)
        case _:
            # Hooks keep their own approvals, and the approval of a URL is recorded as its host.
            return None


def approval_record(
    approval: SessionApproval | None, request: PermissionRequest, facts: Facts, domain: str | None
) -> ApprovalRecord | None:
    """Return the record to keep for an approved ``request``; ``None`` if it would cover nothing.

    ``domain`` is the host that the client approves, if any.
    """
    record = ApprovalRecord(approval, hosts=frozenset([domain.casefold()] if domain else ()))
    if approval is not None and _applies_to(approval, facts):
        record = replace(
            record,
            paths=frozenset(path.real for path in facts.outside_paths),
            hosts=record.hosts | frozenset(() if facts.any_host else facts.hosts),
        )
        if isinstance(request, ShellPermission):
            named = {*(approval.command_identifiers or ())}
            anchors = anchors_of(named, facts.folder).union(segment.anchor for segment in facts.segments)
            marks = {facts.git_mark, facts.files_mark} - {"", CHANGING}
            record = replace(record, anchors=anchors.union(facts.programs, marks))
            if request.can_offer_session_approval and (
                request.full_command_text in named
                or named.issuperset(command.identifier for command in request.commands)
            ):
                record = replace(record, texts=frozenset([_text_of(request)]))
                if request.sandboxed or (request.sandboxed is False and shows_only(facts.segments)):
                    record = replace(
                        record,
                        alike=frozenset(
                            text
                            for segment in facts.segments
                            for text in likenesses_here(segment, segment.likeness.gives)
                        ),
                    )
            if request.request_sandbox_bypass:
                # Other command lines with the same commands remain in the sandbox.
                record = replace(record, approval=SessionApproval(kind="commands", command_identifiers=[]))
        of_server = approval.kind == "mcp" and approval.tool_name is None
        if facts.scope is not None and not isinstance(request, ShellPermission) and not of_server:
            record = replace(record, texts=frozenset([facts.scope]))
    elif facts.kind == "url" and not domain:
        record = replace(record, hosts=frozenset(facts.hosts))
    return record if record.approval or record.hosts else None


def approved_commands(records: Iterable[ApprovalRecord]) -> ApprovedCommands:
    """Collect the commands that ``records`` approve, with their paths and hosts."""
    records = list(records)
    commands = [record for record in records if record.approval is not None and record.approval.kind == "commands"]
    return ApprovedCommands(
        frozenset(
            (name, anchor)
            for record in commands
            if record.approval
            for name in record.approval.command_identifiers or ()
            for anchor in ("", *record.anchors)
        ),
        frozenset(path for record in commands for path in record.paths),
        frozenset(host for record in records for host in record.hosts),
        frozenset(text for record in commands for text in record.alike),
    )


def covers(records: Iterable[ApprovalRecord], request: PermissionRequest, facts: Facts) -> bool:
    """Return whether earlier approvals cover all of a call. Of command lines, only identical ones are covered."""
    records = list(records)
    if facts.typed:
        return False
    if facts.kind == "url":
        return bool(facts.hosts) and {host for record in records for host in record.hosts}.issuperset(facts.hosts)
    matching = [record for record in records if record.approval is not None and _applies_to(record.approval, facts)]
    paths = {path for record in matching for path in record.paths}
    if not matching or not paths.issuperset(path.real for path in facts.outside_paths):
        return False
    match request:
        case ShellPermission():
            anchors = facts.programs | {f"{facts.folder}\n"}
            texts = {_text_of(request), *_unfiltered(request, facts)}
            return any(texts & record.texts and anchors <= record.anchors for record in matching)
        case ReadPermission() | WritePermission():
            return bool(facts.paths)
        case McpPermission():
            # Approvals of a whole server, and those that clients add, name no definition of a tool.
            return any(not record.texts or facts.scope in record.texts for record in matching)
        case _:
            return any(facts.scope in record.texts if record.texts else facts.scope is None for record in matching)


def has_changed(records: Iterable[ApprovalRecord], facts: Facts) -> bool:
    """Return whether an MCP tool was approved by its name, with another definition."""
    return facts.kind == "mcp" and any(
        record.texts and facts.scope not in record.texts
        for record in records
        if record.approval is not None and _applies_to(record.approval, facts)
    )


def _text_of(request: ShellPermission, line: str = "") -> str:
    """Return the text that an approval of the whole command line covers."""
    # Approval of a confined command does not cover the same command outside of the sandbox, and the reverse.
    line = line or request.full_command_text
    return f"{OUTSIDE}{line}" if request.request_sandbox_bypass else line


def _unfiltered(request: ShellPermission, facts: Facts) -> Iterator[str]:
    """Yield the text of a command whose output goes through filters, without these."""
    first, *others = facts.segments or [None]
    if first is not None and others and all(segment is not None and segment.filters for segment in others):
        line = request.full_command_text.strip()
        if line.startswith(first.text) and not re.search(r"[&;\n]", _JOINED.sub("", line[len(first.text) :])):
            yield _text_of(request, _JOINED.sub("", first.text).strip())


_JOINED: Final = re.compile(r"\b2>&1(?=\s|\Z)|\|&")


def _applies_to(approval: SessionApproval, facts: Facts) -> bool:
    """Return whether ``approval`` is for calls of this kind, tool or server."""
    match facts.kind:
        case "shell":
            return approval.kind == "commands"
        case "mcp":
            return (
                approval.kind == "mcp"
                and approval.server_name == facts.server
                and approval.tool_name in (None, facts.name)
            )
        case "custom-tool":
            return approval.kind == "custom-tool" and approval.tool_name == facts.name
        case "hook":
            return False
        case kind:
            return approval.kind == kind


Scope: TypeAlias = Literal["session", "location", "everywhere"]


class Kept(Struct, frozen=True):
    """An approval or an allow rule, and where it holds."""

    scope: Scope
    item: ApprovalRecord | Rule

    @property
    def value(self) -> str:
        """The approval as text: equal for equal approvals."""
        value = [self.item.kind, self.item.argument] if isinstance(self.item, Rule) else self.item.to_json()
        return json.dumps(value, sort_keys=True)

    @property
    def id(self) -> str:
        """The same for the same approval in the same scope, in all processes."""
        return sha256(f"{self.scope} {self.value}".encode()).hexdigest()[:16]

    @property
    def rules(self) -> list[Rule]:
        return [self.item] if isinstance(self.item, Rule) else self.item.rules()


def list_kept(session: StoredApprovals, location: StoredApprovals, everywhere: StoredApprovals) -> list[Kept]:
    """Return all approvals, each once: an approval that is stored is not listed for the session as well."""
    stored = {kept.id: kept for kept in (*_kept("location", location), *_kept("everywhere", everywhere))}
    known = {kept.value for kept in stored.values()}
    own = {kept.id: kept for kept in _kept("session", session) if kept.value not in known}
    return [*own.values(), *stored.values()]


def _kept(scope: Scope, approvals: StoredApprovals) -> list[Kept]:
    items: list[ApprovalRecord | Rule] = [*approvals.approvals, *approvals.rules]
    return [Kept(scope, item) for item in items]
