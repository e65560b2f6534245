"""Permission requests as handlers receive them, and ready-made decisions.

A handler is ``async def handler(request) -> PermissionDecision``. The class of ``request`` is the kind of
permission: ``ShellPermission``, ``WritePermission`` and so on, or :class:`UnknownPermission` for a kind that this
version does not know. A handler that raises denies the request: the model is told that no user was available.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from jumpseat_protocol import permissions
from jumpseat_protocol.permissions import PermissionDecision, SessionApproval


@dataclass(frozen=True, slots=True)
class UnknownPermission:
    """A request of a kind unknown to this version. ``data`` is the whole request."""

    kind: str
    data: dict[str, Any]


PermissionRequest: TypeAlias = permissions.PermissionRequest | UnknownPermission
PermissionHandler: TypeAlias = Callable[[PermissionRequest], Awaitable[PermissionDecision]]


def approve_once() -> PermissionDecision:
    """Approve this request only."""
    return PermissionDecision(kind="approve-once")


def approve_for_session(approval: SessionApproval | None = None) -> PermissionDecision:
    """Approve this request, and all that ``approval`` covers for the rest of the session."""
    return PermissionDecision(kind="approve-for-session", approval=approval)


def reject(feedback: str | None = None) -> PermissionDecision:
    """Deny the request.

    Without ``feedback`` the turn ends here; with it the model reads the text and goes on.
    """
    return PermissionDecision(kind="reject", feedback=feedback)


def cancel() -> PermissionDecision:
    """Cancel all calls of the answer: those that wait do not run, and the model is told."""
    return PermissionDecision(kind="cancelled")


def no_result() -> PermissionDecision:
    """Leave the request to other clients of the session; no response is sent."""
    return PermissionDecision(kind="no-result")


async def approve_all(request: PermissionRequest) -> PermissionDecision:
    """Approve every request that a program may approve. For tests and sandboxes.

    Requests that a host's policy wants a person to decide about are left to other clients.
    """
    needs_person = not isinstance(request, UnknownPermission) and request.managed_approval_required
    return no_result() if needs_person else approve_once()
