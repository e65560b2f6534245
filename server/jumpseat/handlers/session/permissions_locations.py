"""``session.permissions.locations.*``: approvals that are stored for a repository or a folder."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.agent.permissions.approvals import ApprovalRecord
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.permission_methods import (
    AddToolApprovalParams,
    LocationApplyResult,
    LocationParams,
    LocationResult,
)
from jumpseat_protocol.permissions import WireRule
from jumpseat_protocol.server import SuccessResult


def resolve(ctx: Context, params: LocationParams) -> LocationResult:
    """Return the location that approvals for a folder are stored for: its repository, or the folder itself.

    Raises:
        InvalidRequestError: the path is invalid.
    """
    session = ctx.registry.live(params.session_id)
    return _location(session.permissions.approvals.location_key_of(_folder(session, params.working_directory)))


def apply(ctx: Context, params: LocationParams) -> LocationApplyResult:
    """Apply the stored approvals of a folder's location to the session.

    Raises:
        InvalidRequestError: the path is invalid.
    """
    session = ctx.registry.live(params.session_id)
    permissions = session.permissions
    changed, rules = permissions.approvals.apply_location(_folder(session, params.working_directory))
    location = _location(permissions.approvals.location_key)
    return LocationApplyResult(
        location_key=location.location_key,
        location_type=location.location_type,
        changed=changed,
        applied_rule_count=len(rules),
        applied_directory_count=0,
        applied_rules=[WireRule(kind=rule.kind, argument=rule.argument) for rule in rules],
    )


async def add_tool_approval(ctx: Context, params: AddToolApprovalParams) -> SuccessResult:
    """Store an approval for a location."""
    permissions = ctx.registry.live(params.session_id).permissions
    await permissions.approvals.add_for_location(params.location_key, ApprovalRecord(params.approval))
    return SuccessResult()


def _folder(session: Session, path: str) -> Path:
    if session.permissions.path_scope.resolve(path) is None:
        raise InvalidRequestError(f"invalid path {path[:200]!r}")
    return session.settings.cwd / path


def _location(key: str) -> LocationResult:
    git = Path(key) / ".git"
    return LocationResult(location_key=key, location_type="repo" if os.path.exists(git) else "dir")
