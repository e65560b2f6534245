"""``session.permissions.*`` beyond asking and answering: rules, folders, hosts, locations and trust.

Loaded when the first of these methods is called; see ``methods.py``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.permissions import SessionApproval, WireRule
from jumpseat_protocol.wire import WireModel

PermissionMode = Literal["manual", "assisted", "allow-all"]


class RuleSet(WireModel):
    approved: list[WireRule] = Field(default_factory=list[WireRule])
    denied: list[WireRule] = Field(default_factory=list[WireRule])


class PathsConfig(WireModel):
    """``include_temp_directory`` and ``workspace_path`` say nothing where all is ``unrestricted``."""

    unrestricted: StrictBool = False
    additional_directories: list[str] = Field(default_factory=list)
    include_temp_directory: StrictBool = True
    workspace_path: str | None = None


class UrlsConfig(WireModel):
    unrestricted: StrictBool = False
    initial_allowed: list[str] = Field(default_factory=list)


class PermissionsConfigureParams(WireModel):
    """What is given replaces what was; what is not stays as it is."""

    session_id: str
    approve_all_tool_permission_requests: StrictBool | None = None
    approve_all_read_permission_requests: StrictBool | None = None
    rules: RuleSet | None = None
    paths: PathsConfig | None = None
    urls: UrlsConfig | None = None
    additional_content_exclusion_policies: list[dict[str, Any]] | None = None


class ModifyRulesParams(WireModel):
    """``add`` comes first, then ``remove``; ``remove_all`` leaves nothing."""

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
    path: str = Field(min_length=1)


class PermissionPathsResult(WireModel):
    directories: list[str]
    primary: str


class PathAllowedResult(WireModel):
    allowed: StrictBool


class LocationParams(WireModel):
    session_id: str
    working_directory: str = Field(min_length=1)


class LocationResult(WireModel):
    location_key: str
    location_type: Literal["repo", "dir"]


class LocationApplyResult(LocationResult):
    """``changed`` says that another location was heeded before."""

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
