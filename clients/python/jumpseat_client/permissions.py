"""Answering permission requests: the shapes a handler gets and ready-made decisions.

A handler is ``async def handler(request) -> PermissionDecision``. What is asked for shows in the class of
``request``: ``ShellPermission``, ``WritePermission`` and so on, or :class:`UnknownPermission` for a kind that
this version does not know. A handler that raises denies: the model is told that nobody could be asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from jumpseat_protocol import permissions
from jumpseat_protocol.permissions import PermissionDecision, SessionApproval


@dataclass(frozen=True, slots=True)
class UnknownPermission:
    """A request of a kind that this version has no class for. ``data`` is the request as it came."""

    kind: str
    data: dict[str, Any]


PermissionRequest: TypeAlias = permissions.PermissionRequest | UnknownPermission
PermissionHandler: TypeAlias = Callable[[PermissionRequest], Awaitable[PermissionDecision]]


def approve_once() -> PermissionDecision:
    """Run it, this time."""
    return PermissionDecision(kind="approve-once")


def approve_for_session(approval: SessionApproval | None = None) -> PermissionDecision:
    """Run it, and whatever ``approval`` covers, without asking again in this session."""
    return PermissionDecision(kind="approve-for-session", approval=approval)


def reject(feedback: str | None = None) -> PermissionDecision:
    """Don't run it. Without ``feedback`` the prompt ends here; with it the model reads the text and goes on."""
    return PermissionDecision(kind="reject", feedback=feedback)


def no_result() -> PermissionDecision:
    """Leave the request to other clients of the session: nothing is sent."""
    return PermissionDecision(kind="no-result")


async def approve_all(request: PermissionRequest) -> PermissionDecision:
    """A handler that says yes to everything. For tests and for sandboxes."""
    return approve_once()
