"""What a person has approved beyond one call: what such an approval covers, and where it is kept.

An approval names commands, a tool or a kind. What the approved call touched besides, hosts and places outside of
the session's folders, is remembered with it, each by itself: approving one such call approves no other place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from jumpseat.agent.permissions.rules import Facts, Known, Rule
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


@dataclass(frozen=True, slots=True)
class Remembered:
    """``places`` are real paths outside of the session's folders, ``texts`` whole lines, or scopes of calls.
    ``approval`` may be none where hosts alone were approved."""

    approval: SessionApproval | None = None
    places: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def record(self) -> dict[str, Any]:
        """As it is kept in a file."""
        return {
            "approval": self.approval.wire() if self.approval else None,
            "places": sorted(self.places),
            "hosts": sorted(self.hosts),
            "texts": sorted(self.texts),
        }

    def rules(self) -> list[Rule]:
        """As rules for people and clients to read."""
        shown = [Rule("url", host) for host in sorted(self.hosts)]
        approval = self.approval
        if approval is None:
            return shown
        match approval.kind:
            case "commands":
                return [Rule("shell", one) for one in approval.command_identifiers or ()]
            case "mcp":
                tool = f":{approval.tool_name}" if approval.tool_name else ""
                return [Rule("mcp", f"{approval.server_name}{tool}")]
            case "custom-tool":
                return [Rule("custom-tool", approval.tool_name)]
            case kind:
                return [Rule(kind)]


def remembered(record: Any) -> Remembered | None:
    """What :meth:`Remembered.record` has written; ``None`` for anything else."""
    if not isinstance(record, dict):
        return None
    values = cast("dict[str, Any]", record)
    try:
        approval = values.get("approval")
        return Remembered(
            SessionApproval.model_validate(approval) if approval is not None else None,
            *(frozenset(_texts(values.get(name, []))) for name in ("places", "hosts", "texts")),
        )
    except ValueError:
        return None


def _texts(values: Any) -> Iterable[str]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in cast("list[Any]", values)):
        raise ValueError("expected a list of texts")
    return cast("list[str]", values)


@dataclass(slots=True)
class Kept:
    """What is kept for one location, or for the session."""

    approvals: list[Remembered] = field(default_factory=list[Remembered])
    rules: list[Rule] = field(default_factory=list[Rule])


class ApprovalStore(Protocol):
    """Approvals that outlive a session. ``None`` as the location stands for everywhere.

    All that write may wait for other processes, and raise :class:`~jumpseat.errors.StoreError` where nothing could
    be written.
    """

    def read(self, location: str | None) -> Kept: ...

    def add(self, location: str | None, one: Remembered) -> None: ...

    def change_rules(self, location: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None: ...


def narrowest(request: PermissionRequest) -> SessionApproval | None:
    """The narrowest approval that covers ``request`` again; ``None`` where it cannot be offered safely."""
    match request:
        case ShellPermission():
            if not request.can_offer_session_approval:
                return None
            return SessionApproval(kind="commands", command_identifiers=[c.identifier for c in request.commands])
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
            # The hook asks each time, it is for the hook to remember; of a URL, the host is.
            return None


def remember(
    approval: SessionApproval | None, request: PermissionRequest, facts: Facts, domain: str | None
) -> Remembered | None:
    """What to keep of an approved ``request``; ``None`` where nothing is to be."""
    one = Remembered(approval, hosts=frozenset([domain.casefold()] if domain else ()))
    if approval is not None and _is_of(approval, facts):
        one = replace(
            one,
            places=frozenset(place.real for place in facts.outside),
            hosts=one.hosts | frozenset(() if facts.any_host else facts.hosts),
        )
        named = {*(approval.command_identifiers or ())}
        if (
            isinstance(request, ShellPermission)
            and request.can_offer_session_approval
            and named.issuperset(command.identifier for command in request.commands)
        ):
            one = replace(one, texts=frozenset([request.full_command_text]))
        if facts.scope is not None and not isinstance(request, ShellPermission):
            one = replace(one, texts=frozenset([facts.scope]))
    elif facts.kind == "url" and not domain:
        one = replace(one, hosts=frozenset(facts.hosts))
    return one if one.approval or one.hosts else None


def known_of(kept: Iterable[Remembered]) -> Known:
    """What ``kept`` says of commands."""
    kept = list(kept)
    commands = [one for one in kept if one.approval is not None and one.approval.kind == "commands"]
    return Known(
        frozenset(name for one in commands if one.approval for name in one.approval.command_identifiers or ()),
        frozenset(place for one in commands for place in one.places),
        frozenset(host for one in kept for host in one.hosts),
    )


def covered(kept: Iterable[Remembered], request: PermissionRequest, facts: Facts) -> bool:
    """Whether what was approved before covers all of this call; of commands, whole lines only."""
    kept = list(kept)
    if facts.kind == "url":
        return bool(facts.hosts) and {host for one in kept for host in one.hosts}.issuperset(facts.hosts)
    approvals = [one for one in kept if one.approval is not None and _is_of(one.approval, facts)]
    places = {place for one in approvals for place in one.places}
    if not approvals or not places.issuperset(place.real for place in facts.outside):
        return False
    match request:
        case ShellPermission():
            return any(request.full_command_text in one.texts for one in approvals)
        case ReadPermission() | WritePermission():
            return bool(facts.places)
        case _:
            return any(facts.scope in one.texts if one.texts else facts.scope is None for one in approvals)


def _is_of(approval: SessionApproval, facts: Facts) -> bool:
    """Whether ``approval`` is about calls of this sort at all."""
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
