"""Ask clients for permission, and convert their decisions.

A question goes to all attached clients; the first answer counts, and all clients are told the result. Whether to
ask, and which approvals to keep, is decided in :mod:`jumpseat.agent.permissions.permissions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import anyio
from msgspec import Struct

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.clock import new_id
from jumpseat.agent.observation import Observers, Question
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    AssistedApproval,
    DecidedBy,
    Decider,
    PermissionDecision,
    PermissionRequest,
    PermissionResult,
    WireRule,
    prompt_of,
)
from jumpseat_protocol.structs import PartlyCompared

USER_REJECTED: Final = "The user rejected this tool call."
COULD_NOT_ASK: Final = "Permission denied and could not request permission from user"
DENIED_BY_RULE: Final = "Permission denied by a rule"

# Without validation, whose code would be built here, in each process.
NOT_AVAILABLE: Final = PermissionDecision.model_construct(kind="user-not-available")
CANCELLED: Final = PermissionDecision.model_construct(kind="cancelled")

STORED_DECISIONS: Final = frozenset({"approve-for-location", "approved-for-location", "approve-permanently"})
"""The decisions of clients that are stored, and apply to other sessions, too."""

# The kind in `permission.completed` for each decision of a client; other kinds are passed on unchanged.
_COMPLETED: Final[dict[str, str]] = {
    "approve-once": "approved",
    "approve-for-session": "approved-for-session",
    "approve-for-location": "approved-for-location",
    "approve-permanently": "approved",
    "approve-read-only-for-session": "approved-read-only-for-session",
    "reject": "denied-interactively-by-user",
    "user-not-available": "denied-no-approval-rule-and-could-not-request-from-user",
    "cancelled": "cancelled",
}


class Verdict(PartlyCompared, Struct, frozen=True):
    """The result of a permission request.

    A ``rejected`` call ends the turn; the model is told about a ``denied`` call. ``cancelled`` means that the
    question was withdrawn rather than answered. ``arguments`` replace those of an allowed call if a person changed
    them. ``confined_only`` means that the call is allowed only because it stays in the sandbox. ``by`` is who
    decided, and ``reason`` the rule or mode, if there is one.
    """

    uncompared = ("by", "reason")
    status: Literal["allowed", "denied", "rejected"]
    message: str = ""
    arguments: JsonObject | None = None
    cancelled: bool = False
    confined_only: bool = False
    by: Decider = "client"
    reason: str = ""


ALLOWED: Final = Verdict("allowed")
APPROVED: Final = Verdict("allowed", by="approval")
"""The verdict of an earlier approval."""

FEEDBACK: Final = " User feedback: "
"""What a refusal has between the fact and the words of the user."""

ALLOWED_INSIDE: Final = Verdict("allowed", confined_only=True, by="sandbox")


class PermissionQuestions:
    """The questions of one session. ``emit`` publishes events."""

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        observers: Observers | None = None,
        session_id: str = "",
    ) -> None:
        self._emit = emit
        self._observers = observers or Observers()
        self._session_id = session_id
        self.pending: PendingRequests[PermissionRequest, PermissionDecision] = PendingRequests()
        self._opinions: dict[str, AssistedApproval] = {}
        self._behind: dict[str, int] = {}

    async def ask(
        self,
        request: PermissionRequest,
        opinion: AssistedApproval | None,
        settle: Callable[[PermissionDecision], Awaitable[PermissionDecision]],
        calls_behind: int = 0,
    ) -> PermissionDecision:
        """Ask clients and wait for a decision without limit.

        ``settle`` returns the decision as it takes effect, before it is published. ``calls_behind`` is the number
        of calls of the same answer that wait for it.
        """
        record = Question(
            session_id=self._session_id, asks_for="permission", call_id=request.tool_call_id, kind=request.kind
        )
        with self._observers.watch(record):
            decision = await self._ask(request, opinion, settle, calls_behind)
            record.result = result_of(decision).kind
        return decision

    async def _ask(
        self,
        request: PermissionRequest,
        opinion: AssistedApproval | None,
        settle: Callable[[PermissionDecision], Awaitable[PermissionDecision]],
        calls_behind: int,
    ) -> PermissionDecision:
        pending = self.pending.ask(request)
        if calls_behind:
            self._behind[pending.id] = calls_behind
        if opinion is not None:
            self._opinions[pending.id] = opinion
        try:
            self._emit(self.event(pending))
            decision = await settle(await pending.answer())
        except anyio.get_cancelled_exc_class():
            # Clients that show the question remove it.
            self._complete(pending.id, request, CANCELLED)
            raise
        finally:
            self.pending.close(pending)
            self._opinions.pop(pending.id, None)
            self._behind.pop(pending.id, None)
        self._complete(pending.id, request, decision, pending.by)
        return decision

    def publish_resolved(
        self, request: PermissionRequest, decision: PermissionDecision, opinion: AssistedApproval | None = None
    ) -> None:
        """Publish what a judging model with an ``opinion``, or a hook, decided, as a question that is resolved."""
        request_id = new_id()
        prompt = prompt_of(request, opinion)
        self._emit(
            events.PermissionRequested(
                request_id=request_id, permission_request=request, prompt_request=prompt, resolved_by_hook=True
            )
        )
        self._complete(request_id, request, decision)

    def event(self, pending: Pending[PermissionRequest, PermissionDecision]) -> events.PermissionRequested:
        """Build the event that asks clients."""
        return events.PermissionRequested(
            request_id=pending.id,
            permission_request=pending.question,
            # Without an opinion it would only repeat the request.
            prompt_request=self.prompt(pending) if pending.id in self._opinions else None,
            calls_behind=self._behind.get(pending.id),
        )

    def prompt(self, pending: Pending[PermissionRequest, PermissionDecision]) -> dict[str, object]:
        """Build the prompt that clients show to a person."""
        return prompt_of(pending.question, self._opinions.get(pending.id))

    def _complete(
        self,
        request_id: str,
        request: PermissionRequest,
        decision: PermissionDecision,
        by: DecidedBy | None = None,
    ) -> None:
        self._emit(
            events.PermissionCompleted(
                request_id=request_id,
                tool_call_id=request.tool_call_id,
                result=result_of(decision),
                decided_by=by,
            )
        )


def result_of(decision: PermissionDecision) -> PermissionResult:
    """Convert a decision to the result for clients: the fields of its kind, including those the SDKs require."""
    kind = _COMPLETED.get(decision.kind, decision.kind)
    result = PermissionResult(
        kind=kind,
        feedback=decision.feedback,
        approval=decision.approval.wire() if decision.approval else None,
        location_key=decision.location_key,
    )
    match kind:
        case "approved-read-only-for-session":
            result.directories = decision.directories or []
        case "cancelled":
            result.reason = decision.reason
        case "denied-by-rules":
            result.rules = [{"kind": rule.kind, "argument": rule.argument} for rule in decision.rules or []]
        case "denied-by-content-exclusion-policy":
            result.path, result.message = decision.path or "", decision.message or ""
        case "denied-by-permission-request-hook":
            result.message, result.interrupt = decision.message, decision.interrupt
        case "denied-interactively-by-user":
            result.force_reject = decision.force_reject
        case _:
            pass
    return result


def verdict_of(decision: PermissionDecision) -> Verdict:
    """Convert a decision to the verdict on the call."""
    match decision.kind:
        case (
            "approve-once"
            | "approve-for-session"
            | "approve-for-location"
            | "approve-permanently"
            | "approve-read-only-for-session"
            | "approved"
            | "approved-for-session"
            | "approved-for-location"
            | "approved-read-only-for-session"
        ):
            return Verdict("allowed", arguments=decision.modified_args)
        case "reject" | "denied-interactively-by-user":
            if decision.feedback:
                return Verdict("denied", f"{USER_REJECTED}{FEEDBACK}{decision.feedback}")
            return Verdict("denied" if decision.interrupt is False else "rejected", USER_REJECTED)
        case "denied-by-rules":
            return Verdict("denied", ": ".join([DENIED_BY_RULE, *map(_rule_text, decision.rules or [])][:2]))
        case "denied-by-content-exclusion-policy" | "denied-by-permission-request-hook":
            message = f"{DENIED_BY_RULE}: {decision.message}" if decision.message else DENIED_BY_RULE
            return Verdict("rejected" if decision.interrupt else "denied", message)
        case "cancelled":
            return Verdict("denied", "Permission request cancelled", cancelled=True)
        case "user-not-available" | "denied-no-approval-rule-and-could-not-request-from-user" | "no-result":
            return Verdict("denied", COULD_NOT_ASK, by="nobody")


def _rule_text(rule: WireRule) -> str:
    return rule.kind if rule.argument is None else f"{rule.kind}({rule.argument})"
