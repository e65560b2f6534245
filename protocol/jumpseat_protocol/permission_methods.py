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
    """Rules by what they decide."""

    approved: list[WireRule] = Field(default_factory=list[WireRule])
    """What is approved."""
    denied: list[WireRule] = Field(default_factory=list[WireRule])
    """What is denied."""


class PathsConfig(WireModel):
    """``include_temp_directory`` and ``workspace_path`` are ignored if ``unrestricted``."""

    unrestricted: StrictBool = False
    """Whether all paths may be used."""
    additional_directories: PathTexts = Field(default_factory=list)
    """Folders that may be used."""
    include_temp_directory: StrictBool = True
    """Whether the folder for temporary files may be used."""
    workspace_path: PathText | None = None
    """The folder of the session's own files."""


class UrlsConfig(WireModel):
    """The addresses that may be loaded without a question."""

    unrestricted: StrictBool = False
    """Whether all addresses may be loaded."""
    initial_allowed: list[str] = Field(default_factory=list)
    """The addresses that may be loaded."""


class PermissionsConfigureParams(WireModel):
    """Fields that are set replace the current configuration; others leave it unchanged.

    ``assisted_approval_instructions`` are for the model that judges calls in the mode ``assisted``.
    """

    session_id: str
    approve_all_tool_permission_requests: StrictBool | None = None
    """Whether everything is approved."""
    approve_all_read_permission_requests: StrictBool | None = None
    """Whether all reading is approved."""
    rules: RuleSet | None = None
    """What is approved and denied."""
    paths: PathsConfig | None = None
    """The paths that may be used."""
    urls: UrlsConfig | None = None
    """The addresses that may be loaded."""
    assisted_approval_instructions: str | None = None
    """What the judging model should know."""


class ModifyRulesParams(WireModel):
    """``add`` is applied before ``remove``; ``remove_all`` removes all rules."""

    session_id: str
    scope: Literal["session", "location"]
    """Whether the rules are for the session, or kept for its location."""
    add: list[WireRule] = Field(default_factory=list[WireRule])
    """The rules to add."""
    remove: list[WireRule] = Field(default_factory=list[WireRule])
    """The rules to remove."""
    remove_all: StrictBool = False
    """Whether all rules are removed."""


class SetRequiredParams(WireModel):
    session_id: str
    required: StrictBool
    """Whether this client answers permission requests."""


class PermissionPathParams(WireModel):
    """``path`` is absolute, or relative to the working directory."""

    session_id: str
    path: PathText = Field(min_length=1)
    """The path, absolute or relative to the working directory."""


class PermissionPathsResult(WireModel):
    directories: list[str]
    """The folders."""
    primary: str
    """The working directory."""


class PathAllowedResult(WireModel):
    allowed: StrictBool
    """Whether the path may be used."""


class LocationParams(WireModel):
    session_id: str
    working_directory: PathText = Field(min_length=1)


class LocationResult(WireModel):
    location_key: str
    """The folder or repository that approvals are kept for."""
    location_type: Literal["repo", "dir"]
    """Which of both it is."""


class LocationApplyResult(LocationResult):
    """``changed`` is true if the session used another location before."""

    changed: StrictBool
    """Whether the session used another location before."""
    applied_rule_count: int
    """How many stored rules apply now."""
    applied_directory_count: int
    """How many stored folders apply now."""
    applied_rules: list[WireRule]
    """The rules."""


class AddToolApprovalParams(WireModel):
    session_id: str
    location_key: str = Field(min_length=1)
    """The folder or repository that the approval is kept for."""
    approval: SessionApproval
    """What is approved."""


class TrustedResult(WireModel):
    trusted: StrictBool
    """Whether the folder is trusted."""


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
    """Whether the stored approvals of the location are dropped as well."""


class PendingRequestsResult(WireModel):
    """The open permission requests: ``{requestId, request, permissionRequest}`` each.

    ``request`` is the form to show to a person; ``permissionRequest`` is as in ``permission.requested``.
    """

    items: list[dict[str, Any]]
    """The requests."""


class PermissionModeParams(WireModel):
    session_id: str
    mode: PermissionMode
    """The mode."""
    assisted_approval_model: str | None = None
    """The id of the judging model."""


class PermissionModeResult(WireModel):
    mode: PermissionMode
    """The mode."""


class PermissionModeSetResult(WireModel):
    success: StrictBool = True
    mode: PermissionMode
    """The mode."""


class AllowAllParams(WireModel):
    """``mode`` takes precedence over ``enabled``."""

    session_id: str
    enabled: StrictBool = False
    mode: Literal["on", "off", "auto"] | None = None
    """Whether everything is approved."""


class AllowAllResult(WireModel):
    enabled: StrictBool
    mode: Literal["on", "off"]
    """Whether everything is approved."""


class AllowAllSetResult(AllowAllResult):
    success: StrictBool = True


METHODS: Final[Mapping[str, Method]] = {
    "session.managedSettings.get": Method(
        SessionParams, SessionManagedSettingsResolved, "Return the policy of the session."
    ),
    "session.permissions.handlePendingPermissionRequest": Method(
        HandlePendingPermissionRequestParams, SuccessResult, "Answer a permission request."
    ),
    "session.permissions.setApproveAll": Method(
        SetApproveAllParams, SuccessResult, "Approve everything from now on, or stop that."
    ),
    "session.permissions.resetSessionApprovals": Method(
        ResetApprovalsParams, SuccessResult, "Drop the approvals of the session."
    ),
    "session.permissions.pendingRequests": Method(
        SessionParams, PendingRequestsResult, "List the open permission requests."
    ),
    "session.permissions.getMode": Method(SessionParams, PermissionModeResult, "Return the mode of approvals."),
    "session.permissions.setMode": Method(
        PermissionModeParams, PermissionModeSetResult, "Change the mode of approvals."
    ),
    "session.permissions.getAllowAll": Method(
        SessionParams, AllowAllResult, "Return whether everything is approved."
    ),
    "session.permissions.setAllowAll": Method(
        AllowAllParams, AllowAllSetResult, "Approve everything from now on, or stop that."
    ),
    "session.permissions.configure": Method(
        PermissionsConfigureParams, SuccessResult, "Replace rules, paths and addresses."
    ),
    "session.permissions.modifyRules": Method(ModifyRulesParams, SuccessResult, "Add and remove rules."),
    "session.permissions.setRequired": Method(
        SetRequiredParams, SuccessResult, "Set whether this client answers permission requests."
    ),
    "session.permissions.paths.list": Method(
        SessionParams, PermissionPathsResult, "List the folders that the session may use."
    ),
    "session.permissions.paths.add": Method(
        PermissionPathParams, SuccessResult, "Add a folder that the session may use."
    ),
    "session.permissions.paths.updatePrimary": Method(
        PermissionPathParams, SuccessResult, "Make another folder the primary one."
    ),
    "session.permissions.paths.isPathWithinAllowedDirectories": Method(
        PermissionPathParams, PathAllowedResult, "Return whether the session may use a path."
    ),
    "session.permissions.paths.isPathWithinWorkspace": Method(
        PermissionPathParams, PathAllowedResult, "Return whether a path is in the primary folder."
    ),
    "session.permissions.locations.resolve": Method(
        LocationParams, LocationResult, "Return the folder or repository that approvals are kept for."
    ),
    "session.permissions.locations.apply": Method(
        LocationParams, LocationApplyResult, "Apply the approvals that are kept for a folder or repository."
    ),
    "session.permissions.locations.addToolApproval": Method(
        AddToolApprovalParams, SuccessResult, "Keep an approval for a folder or repository."
    ),
    "session.permissions.folderTrust.isTrusted": Method(
        PermissionPathParams, TrustedResult, "Return whether a person trusts a folder."
    ),
    "session.permissions.folderTrust.addTrusted": Method(PermissionPathParams, SuccessResult, "Trust a folder."),
    "session.permissions.urls.setUnrestrictedMode": Method(
        UnrestrictedUrlsParams, SuccessResult, "Decide whether all addresses may be loaded."
    ),
}
