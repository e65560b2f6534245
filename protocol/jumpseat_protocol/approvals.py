"""``jumpseat.permissions.*``: the approvals that outlast their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from jumpseat_protocol.permissions import WireRule
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class KeptApproval(WireModel):
    """An approval or an allow rule that clients have added.

    It holds in this session, in all sessions of its location, or everywhere. ``rules`` name what it covers;
    ``command_lines`` are approved as a whole, ``paths`` are outside of the session's folders. ``id`` stays the same
    as long as the approval does.
    """

    id: str
    """The id of the approval."""
    scope: Literal["session", "location", "everywhere"]
    """Where it holds."""
    rules: list[WireRule]
    """What it covers."""
    paths: list[str] = Field(default_factory=list)
    """The paths that it covers."""
    hosts: list[str] = Field(default_factory=list)
    """The hosts that it covers."""
    command_lines: list[str] = Field(default_factory=list)
    """The command lines that it covers, each as a whole."""


class KeptApprovalsResult(WireModel):
    """``location`` is the repository or folder whose stored approvals apply."""

    location: str
    """The folder or repository whose stored approvals apply."""
    approvals: list[KeptApproval]
    """The approvals."""


class RevokeParams(WireModel):
    """``ids`` are those of approvals that ``jumpseat.permissions.list`` returned."""

    session_id: str
    ids: list[str]
    """The ids of the approvals."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.permissions.list": Method(
        SessionParams, KeptApprovalsResult, "List the approvals that clients have added."
    ),
    "jumpseat.permissions.revoke": Method(RevokeParams, SuccessResult, "Revoke approvals."),
}
