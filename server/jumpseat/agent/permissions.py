"""Who may do what: the rules of one session, and the question to its clients where no rule decides.

Denied by default: where nothing allows a call and no attached client can be asked, the call does not run, and
one warning per session names the setting that would allow it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionDecision,
    PermissionRequest,
    PermissionResult,
    ReadPermission,
    SessionApproval,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

log = logging.getLogger(__name__)

USER_REJECTED: Final = "The user rejected this tool call."
COULD_NOT_ASK: Final = "Permission denied and could not request permission from user"

CompletedKind: TypeAlias = str
# What `permission.completed` says for each decision a client may send; other kinds are passed on as they are.
_COMPLETED: Final[dict[str, CompletedKind]] = {
    "approve-once": "approved",
    "approve-for-session": "approved-for-session",
    "approve-for-location": "approved-for-location",
    "approve-permanently": "approved",
    "reject": "denied-interactively-by-user",
    "user-not-available": "denied-no-approval-rule-and-could-not-request-from-user",
    "cancelled": "cancelled",
}
_REMEMBERED: Final = frozenset(
    {"approve-for-session", "approve-for-location", "approved-for-session", "approved-for-location"}
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a request. A ``rejected`` call ends the turn, a ``denied`` one is told to the model.

    ``arguments`` are those an allowed call is to run with where a person has changed them.
    """

    status: Literal["allowed", "denied", "rejected"]
    message: str = ""
    arguments: JsonObject | None = None


ALLOWED: Final = Verdict("allowed")
NOT_AVAILABLE: Final = PermissionDecision(kind="user-not-available")
CANCELLED: Final = PermissionDecision(kind="cancelled")


class Permissions:
    """The permission state of one session.

    ``emit`` publishes events; ``can_ask`` says whether an attached client handles permissions;
    ``may_run_unasked`` whether the operator allows what no client can be asked about (``--yolo``).
    """

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        can_ask: Callable[[], bool],
        may_run_unasked: Callable[[], bool],
    ) -> None:
        self._emit = emit
        self._can_ask = can_ask
        self._may_run_unasked = may_run_unasked
        self._approvals: list[SessionApproval] = []
        # Hosts that addresses may be fetched from.
        self._domains: set[str] = set()
        self._warned = False
        self.approve_all = False
        self.pending = PendingRequests[PermissionRequest, PermissionDecision]()

    async def decide(self, request: PermissionRequest) -> Verdict:
        """Judge one call; waits for a client as long as the client takes."""
        if self.approve_all or self._approved(request):
            return ALLOWED
        if not self._can_ask():
            if self._may_run_unasked():
                return ALLOWED
            self._warn()
            return _verdict(NOT_AVAILABLE)
        pending = self.pending.ask(request)
        try:
            self._emit(self.question(pending))
            decision = await pending.answer()
        except anyio.get_cancelled_exc_class():
            # Clients that show the question take it away.
            self._complete(pending.id, request, CANCELLED)
            raise
        finally:
            self.pending.close(pending)
        decision = self._remember(decision, request)
        self._complete(pending.id, request, decision)
        return _verdict(decision)

    def _approved(self, request: PermissionRequest) -> bool:
        if isinstance(request, UrlPermission):
            return host_of(request.url) in self._domains
        return any(_covers(approval, request) for approval in self._approvals)

    def question(self, pending: Pending[PermissionRequest, PermissionDecision]) -> events.PermissionRequested:
        """What clients are asked."""
        return events.PermissionRequested(request_id=pending.id, permission_request=pending.question)

    def _complete(self, request_id: str, request: PermissionRequest, decision: PermissionDecision) -> None:
        self._emit(
            events.PermissionCompleted(
                request_id=request_id,
                tool_call_id=request.tool_call_id,
                result=PermissionResult(
                    kind=_COMPLETED.get(decision.kind, decision.kind),
                    feedback=decision.feedback,
                    approval=decision.approval.wire() if decision.approval else None,
                    location_key=decision.location_key,
                ),
            )
        )

    def reset(self) -> None:
        """Forget what was approved for the session."""
        self._approvals.clear()
        self._domains.clear()

    def _remember(self, decision: PermissionDecision, request: PermissionRequest) -> PermissionDecision:
        """Keep what was approved beyond this call; returns the decision as it came to be.

        Without an approval of the client's own, the narrowest one that covers the call again is meant. Where there
        is none that would be safe, the call alone is approved.
        """
        if isinstance(request, UrlPermission):
            if decision.kind in _REMEMBERED or decision.kind == "approve-permanently":
                self._domains.add((decision.domain or host_of(request.url)).lower())
            return decision
        if decision.kind not in _REMEMBERED:
            return decision
        approval = decision.approval or _approval_of(request)
        if approval is None:
            return PermissionDecision(kind="approve-once")
        self._approvals.append(approval)
        return decision.model_copy(update={"approval": approval})

    def _warn(self) -> None:
        if self._warned:
            return
        self._warned = True
        self._emit(
            events.SessionWarning(
                warning_type="permission",
                message=(
                    "A tool call was denied because no attached client handles permission requests."
                    " Register a permission handler, or start the server with --yolo (configuration key"
                    " permissions.allow_unasked; permissions.allow_old_clients is the same for clients that speak"
                    " protocol 2) to allow such calls."
                ),
            )
        )


def _verdict(decision: PermissionDecision) -> Verdict:
    match decision.kind:
        case (
            "approve-once"
            | "approve-for-session"
            | "approve-for-location"
            | "approve-permanently"
            | "approved"
            | "approved-for-session"
            | "approved-for-location"
        ):
            return Verdict("allowed", arguments=decision.modified_args)
        case "reject" | "denied-interactively-by-user":
            if decision.feedback:
                return Verdict("denied", f"{USER_REJECTED} User feedback: {decision.feedback}")
            return Verdict("rejected", USER_REJECTED)
        case "denied-by-rules" | "denied-by-content-exclusion-policy" | "denied-by-permission-request-hook":
            return Verdict("denied", "Permission denied by a rule")
        case "cancelled":
            return Verdict("denied", "Permission request cancelled")
        case "user-not-available" | "denied-no-approval-rule-and-could-not-request-from-user" | "no-result":
            return Verdict("denied", COULD_NOT_ASK)


def _approval_of(request: PermissionRequest) -> SessionApproval | None:
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
        case CustomToolPermission():
            return SessionApproval(kind="custom-tool", tool_name=request.tool_name)
        case MemoryPermission():
            return SessionApproval(kind="memory")
        case McpPermission():
            return SessionApproval(kind="mcp", server_name=request.server_name, tool_name=request.tool_name)
        case UrlPermission() | HookPermission():
            return None


def host_of(url: str) -> str:
    """The host that ``url`` leads to, in lower case; empty where it leads nowhere."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _covers(approval: SessionApproval, request: PermissionRequest) -> bool:
    match request:
        case ShellPermission():
            # A line that could not be taken apart with certainty is never covered: it is asked about each time.
            return (
                approval.kind == "commands"
                and request.can_offer_session_approval
                and bool(request.commands)
                and all(command.identifier in (approval.command_identifiers or ()) for command in request.commands)
            )
        case WritePermission():
            return approval.kind == "write"
        case ReadPermission():
            return approval.kind == "read"
        case CustomToolPermission():
            return approval.kind == "custom-tool" and approval.tool_name == request.tool_name
        case MemoryPermission():
            return approval.kind == "memory"
        case UrlPermission():
            # Those are approved by their hosts.
            return False
        case McpPermission():
            # Without a tool it is for all of the server.
            return (
                approval.kind == "mcp"
                and approval.server_name == request.server_name
                and approval.tool_name in (None, request.tool_name)
            )
        case HookPermission():
            # The hook asks each time; it is for the hook to remember.
            return False
