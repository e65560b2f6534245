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
    scope: Literal["session", "location", "everywhere"]
    rules: list[WireRule]
    paths: list[str] = Field(default_factory=list)
    hosts: list[str] = Field(default_factory=list)
    command_lines: list[str] = Field(default_factory=list)


class KeptApprovalsResult(WireModel):
    """``location`` is the repository or folder whose stored approvals apply."""

    location: str
    approvals: list[KeptApproval]


class RevokeParams(WireModel):
    """``ids`` are those of approvals that ``jumpseat.permissions.list`` returned."""

    session_id: str
    ids: list[str]


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.permissions.list": Method(SessionParams, KeptApprovalsResult),
    "jumpseat.permissions.revoke": Method(RevokeParams, SuccessResult),
}
