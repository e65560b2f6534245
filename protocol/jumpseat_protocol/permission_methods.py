"""``session.permissions.*`` (decisions, modes, rules, folders, hosts, locations, trust) and policies of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.events import SessionManagedSettingsResolved
from jumpseat_protocol.limits import PathText, PathTexts
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams, SessionApproval, WireRule
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel

PermissionMode = Literal["manual", "assisted", "sandboxed", "allow-all"]


class RuleSet(WireModel):
    approved: list[WireRule] = Field(default_factory=list[WireRule])
    denied: list[WireRule] = Field(default_factory=list[WireRule])


class PathsConfig(WireModel):
    """``include_temp_directory`` and ``workspace_path`` are ignored if ``unrestricted``."""

    unrestricted: StrictBool = False
    additional_directories: PathTexts = Field(default_factory=list)
    include_temp_directory: StrictBool = True
    workspace_path: PathText | None = None


class UrlsConfig(WireModel):
    unrestricted: StrictBool = False
    initial_allowed: list[str] = Field(default_factory=list)


class PermissionsConfigureParams(WireModel):
    """Fields that are set replace the current configuration; others leave it unchanged.

    ``assisted_approval_instructions`` are for the model that judges calls in the mode ``assisted``.
    """

    session_id: str
    approve_all_tool_permission_requests: StrictBool | None = None
    approve_all_read_permission_requests: StrictBool | None = None
    rules: RuleSet | None = None
    paths: PathsConfig | None = None
    urls: UrlsConfig | None = None
    assisted_approval_instructions: str | None = None


class ModifyRulesParams(WireModel):
    """``add`` is applied before ``remove``; ``remove_all`` removes all rules."""

    session_id: str
    scope: Literal["session", "location"]
    add: list[WireRule] = Field(default_factory=list[WireRule])
    remove: list[WireRule] = Field(default_factory=list[WireRule])
    remove_all: StrictBool = False


class SetRequiredParams(WireModel):
    session_id: str
    required: StrictBool


class PermissionPathParams(WireModel):
    """``path`` is absolute, or relative to the working directory."""

    session_id: str
    path: PathText = Field(min_length=1)


class PermissionPathsResult(WireModel):
    directories: list[str]
    primary: str


class PathAllowedResult(WireModel):
    allowed: StrictBool


class LocationParams(WireModel):
    session_id: str
    working_directory: PathText = Field(min_length=1)


class LocationResult(WireModel):
    location_key: str
    location_type: Literal["repo", "dir"]


class LocationApplyResult(LocationResult):
    """``changed`` is true if the session used another location before."""

    changed: StrictBool
    applied_rule_count: int
    applied_directory_count: int
    applied_rules: list[WireRule]


class AddToolApprovalParams(WireModel):
    session_id: str
    location_key: str = Field(min_length=1)
    approval: SessionApproval


class TrustedResult(WireModel):
    trusted: StrictBool


class UnrestrictedUrlsParams(WireModel):
    session_id: str
    enabled: StrictBool


class SetApproveAllParams(WireModel):
    session_id: str
    enabled: StrictBool


class ResetApprovalsParams(WireModel):
    """With ``include_location``, the stored approvals of the location no longer apply to this session, either."""

    session_id: str
    include_location: StrictBool = True


class PendingRequestsResult(WireModel):
    """The open permission requests: ``{requestId, request, permissionRequest}`` each.

    ``request`` is the form to show to a person; ``permissionRequest`` is as in ``permission.requested``.
    """

    items: list[dict[str, Any]]


class PermissionModeParams(WireModel):
    session_id: str
    mode: PermissionMode
    assisted_approval_model: str | None = None


class PermissionModeResult(WireModel):
    mode: PermissionMode


class PermissionModeSetResult(WireModel):
    success: StrictBool = True
    mode: PermissionMode


class AllowAllParams(WireModel):
    """``mode`` takes precedence over ``enabled``."""

    session_id: str
    enabled: StrictBool = False
    mode: Literal["on", "off", "auto"] | None = None


class AllowAllResult(WireModel):
    enabled: StrictBool
    mode: Literal["on", "off"]


class AllowAllSetResult(AllowAllResult):
    success: StrictBool = True


METHODS: Final[Mapping[str, Method]] = {
    "session.managedSettings.get": Method(SessionParams, SessionManagedSettingsResolved),
    "session.permissions.handlePendingPermissionRequest": Method(
        HandlePendingPermissionRequestParams, SuccessResult
    ),
    "session.permissions.setApproveAll": Method(SetApproveAllParams, SuccessResult),
    "session.permissions.resetSessionApprovals": Method(ResetApprovalsParams, SuccessResult),
    "session.permissions.pendingRequests": Method(SessionParams, PendingRequestsResult),
    "session.permissions.getMode": Method(SessionParams, PermissionModeResult),
    "session.permissions.setMode": Method(PermissionModeParams, PermissionModeSetResult),
    "session.permissions.getAllowAll": Method(SessionParams, AllowAllResult),
    "session.permissions.setAllowAll": Method(AllowAllParams, AllowAllSetResult),
    "session.permissions.configure": Method(PermissionsConfigureParams, SuccessResult),
    "session.permissions.modifyRules": Method(ModifyRulesParams, SuccessResult),
    "session.permissions.setRequired": Method(SetRequiredParams, SuccessResult),
    "session.permissions.paths.list": Method(SessionParams, PermissionPathsResult),
    "session.permissions.paths.add": Method(PermissionPathParams, SuccessResult),
    "session.permissions.paths.updatePrimary": Method(PermissionPathParams, SuccessResult),
    "session.permissions.paths.isPathWithinAllowedDirectories": Method(PermissionPathParams, PathAllowedResult),
    "session.permissions.paths.isPathWithinWorkspace": Method(PermissionPathParams, PathAllowedResult),
    "session.permissions.locations.resolve": Method(LocationParams, LocationResult),
    "session.permissions.locations.apply": Method(LocationParams, LocationApplyResult),
    "session.permissions.locations.addToolApproval": Method(AddToolApprovalParams, SuccessResult),
    "session.permissions.folderTrust.isTrusted": Method(PermissionPathParams, TrustedResult),
    "session.permissions.folderTrust.addTrusted": Method(PermissionPathParams, SuccessResult),
    "session.permissions.urls.setUnrestrictedMode": Method(UnrestrictedUrlsParams, SuccessResult),
}
